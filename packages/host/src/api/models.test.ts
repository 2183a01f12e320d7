import type { IncomingHttpHeaders } from 'node:http'
import { expect, onTestFinished, test, vi } from 'vitest'
import { serveModelList } from '../../../testing/src/agents/model-server.ts'
import { openHost } from '../assemble/host.ts'
import { type Config, configFrom } from '../config.ts'
import { keyOf, keyProblem, modelOf, sentenceOf } from '../runs/model-gateway/health.ts'
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

test('a server that needs no key gets none of another server, neither when it is tried nor from a run', async () => {
  const environment = { MODEL_API_KEY: 'sk-of-another-server' }
  vi.stubEnv('MODEL_API_KEY', environment.MODEL_API_KEY)
  onTestFinished(() => void vi.unstubAllEnvs())
  const asked: IncomingHttpHeaders[] = []
  const provider = await serveModelList(['qwen3:8b'], headers => asked.push(headers))
  const config = configured(folder('models'))
  const keyOfRun = ({ config }: { config: Config }) => keyOf(modelOf(config, environment), environment)
  const first = await open(config)
  await first.ask('POST', '/models/choose', { provider, name: 'qwen3:8b' })
  expect(await first.ask('POST', '/models/try')).toMatchObject({
    json: [{ key_variable: null, problem: null }],
  })
  expect(asked).toHaveLength(2)
  expect(JSON.stringify(asked)).not.toContain(environment.MODEL_API_KEY)
  expect(keyOfRun(first.host)).toBe('')
  await first.stop()

  const second = await open(config)
  const model = modelOf(second.host.config, environment)
  expect([keyOfRun(second.host), keyProblem(model, environment)]).toEqual(['', undefined])
  expect(sentenceOf({ cause: 'key_refused' }, model)).toContain('name the model in the configuration')
  await second.stop()

  // Whoever names the server in the configuration means its key.
  const third = await open(configured(folder('models'), { model: { provider, name: 'qwen3:8b' } }))
  expect(keyOfRun(third.host)).toBe(environment.MODEL_API_KEY)
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
