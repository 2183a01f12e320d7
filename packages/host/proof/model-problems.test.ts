import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { findProgram } from '../src/base/programs.ts'
import { openHouse, until } from './house.ts'

/** What keeps agents from asking their model is said at once, instead of minutes of silence. */
const missing = findProgram('bwrap') ? undefined : 'bwrap'
const attempt = missing === undefined || process.env.CI === 'true' ? test : test.skip

test('without a key `up`, `status`, `doctor` and the chat say so, and a run is not tried again', async () => {
  let printed = ''
  const house = await openHouse({
    sandbox: 'process',
    environment: () => ({ HATCHWAY_AGENTS_DRIVER: 'claude', ANTHROPIC_API_KEY: '' }),
    hear: text => {
      printed += text
    },
  })
  const sentence = 'ANTHROPIC_API_KEY is empty where the host runs'
  expect(await house.say('hello')).toContain(
    `I could not answer that. There is no key for the model: ${sentence}`,
  )
  expect(await house.texts()).toHaveLength(1)
  expect(await house.runs()).toMatchObject([{ status: 'failed', error: expect.stringContaining(sentence) }])
  await until(async () => printed.includes(sentence))
  expect(await house.hatchway('status')).toContain(sentence)
  const doctor = await house.hatchway('doctor').catch((error: { stdout: string }) => error.stdout)
  expect(doctor).toMatch(new RegExp(`BAD .*${sentence}`))
})

describe(`Claude in a sandbox${missing === undefined ? '' : ` (needs ${missing})`}`, () => {
  attempt('is refused once by a model API that does not take the key, and the chat is told why', async () => {
    let asked = 0
    const api = createServer((request, response) => {
      request.resume()
      if (request.method === 'POST') asked++
      response.writeHead(401, { 'content-type': 'application/json' })
      response.end('{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}')
    })
    await new Promise<void>(resolve => api.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      api.closeAllConnections()
      api.close()
    })
    const { port } = api.address() as AddressInfo
    const house = await openHouse({
      sandbox: 'bubblewrap',
      environment: () => ({
        HATCHWAY_AGENTS_DRIVER: 'claude',
        HATCHWAY_MODEL_URL: `http://127.0.0.1:${port}`,
        ANTHROPIC_API_KEY: 'sk-that-is-no-longer-valid',
      }),
    })
    await house.say('hello')
    await until(async () => (await house.texts()).length === 2)
    const sentence = 'The model API refuses the host’s key.'
    expect(await house.texts()).toEqual([
      expect.stringContaining(sentence),
      expect.stringContaining(`I could not answer that. ${sentence}`),
    ])
    // Requests that were under way together may all be refused; none follows.
    expect(asked).toBeLessThanOrEqual(3)
    expect(await house.runs()).toHaveLength(1)
    expect(await house.hatchway('status')).toContain(sentence)
  })
})
