import { expect, onTestFinished, test } from 'vitest'
import { serveModelList } from '../../../testing/src/agents/model-server.ts'
import { openHost } from '../assemble/host.ts'
import { type Config, configFrom } from '../config.ts'
import { createApi } from './app.ts'
import { folder } from './testing.ts'

async function open(config: Config) {
  const host = await openHost(config, { watch: false })
  let isOpen = true
  const stop = async () => {
    if (isOpen) await host.stop()
    isOpen = false
  }
  onTestFinished(stop)
  const app = createApi(host)
  const ask = async (method: string, path: string, body?: object) => {
    const response = await app.request(path, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
    return { status: response.status, json: await response.json() }
  }
  return { host, ask, stop }
}

const configured = (data: string, input: object = {}): Config =>
  configFrom({ data, logLevel: 'silent', timezone: 'UTC', ...input }, 'a test')

test('a model that was chosen is used at once and after a restart, until it is forgotten', async () => {
  const provider = await serveModelList(['qwen3:8b'])
  const config = configured(folder('models'))
  const first = await open(config)
  expect(await first.ask('POST', '/models/choose', { provider, name: 'missing' })).toMatchObject({
    status: 400,
    json: { error: { message: expect.stringContaining('does not know') } },
  })
  expect(first.host.config.agents.driver).toBe('concierge')
  expect(await first.ask('POST', '/models/choose', { provider, name: 'qwen3:8b' })).toEqual({
    status: 200,
    json: { provider, name: 'qwen3:8b', driver: 'assistant' },
  })
  const inUse = { agents: { driver: 'assistant' }, model: { provider, name: 'qwen3:8b' } }
  expect(first.host.config).toMatchObject(inUse)
  const { json: settings } = await first.ask('GET', '/settings')
  expect(settings).toContainEqual(
    expect.objectContaining({ name: 'model.name', value: 'qwen3:8b', source: 'chosen by an operator' }),
  )
  // What somebody else has given is not changed under them.
  expect(config.agents.driver).toBe('concierge')
  await first.stop()

  const second = await open(config)
  expect(second.host.config).toMatchObject(inUse)
  expect(await second.ask('DELETE', '/models/chosen')).toEqual({ status: 200, json: { removed: true } })
  expect(second.host.config).toMatchObject({ agents: { driver: 'concierge' }, model: {} })
  await second.stop()

  const third = await open(config)
  expect(third.host.config.agents.driver).toBe('concierge')
})

test('what the configuration names goes before what was chosen', async () => {
  const provider = await serveModelList(['qwen3:8b'])
  const data = folder('models')
  const first = await open(configured(data))
  await first.ask('POST', '/models/choose', { provider, name: 'qwen3:8b' })
  await first.stop()

  const second = await open(configured(data, { model: 'ollama/llama3' }))
  expect(second.host.config.model).toMatchObject({ provider: 'ollama', name: 'llama3' })
  expect(await second.ask('POST', '/models/choose', { provider, name: 'qwen3:8b' })).toMatchObject({
    status: 409,
    json: { error: { code: 'wrong_state' } },
  })
})

test('a model that the configured agent cannot speak with is refused', async () => {
  const { ask, host } = await open(configured(folder('models'), { agents: { driver: 'claude' } }))
  expect(await ask('POST', '/models/choose', { provider: 'google', name: 'gemini-pro' })).toMatchObject({
    status: 400,
    json: { error: { message: expect.stringContaining('cannot speak with Google') } },
  })
  expect(host.config.model.provider).toBeUndefined()
})
