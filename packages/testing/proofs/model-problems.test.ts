import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { findProgram } from '../../host/src/base/programs.ts'
import { openInstallation } from '../src/daemon/installation.ts'
import { until } from '../src/until.ts'

/** What keeps agents from asking their model is said at once, instead of minutes of silence. */
const missing = findProgram('bwrap') ? undefined : 'bwrap'
const attempt = missing === undefined || process.env.CI === 'true' ? test : test.skip

test('without a key `up`, `status`, `doctor` and the chat say so, and a run is not tried again', async () => {
  let printed = ''
  const installation = await openInstallation({
    sandbox: 'process',
    environment: () => ({ HATCHWAY_AGENTS_DRIVER: 'claude', ANTHROPIC_API_KEY: '' }),
    hear: text => {
      printed += text
    },
  })
  const sentence = 'ANTHROPIC_API_KEY is empty where the host runs'
  expect(await installation.say('hello')).toContain(
    `I could not answer that. There is no key for the model: ${sentence}`,
  )
  expect(await installation.texts()).toHaveLength(1)
  expect(await installation.runs()).toMatchObject([
    { status: 'failed', error: expect.stringContaining(sentence) },
  ])
  await until(async () => printed.includes(sentence))
  expect(await installation.hatchway('status')).toContain(sentence)
  const doctor = await installation.hatchway('doctor').catch((error: { stdout: string }) => error.stdout)
  expect(doctor).toMatch(new RegExp(`BAD .*${sentence}`))
})

test('without the driver’s package `up`, `status`, `doctor` and the chat say how to install it', async () => {
  let printed = ''
  const installation = await openInstallation({
    sandbox: 'process',
    environment: home => ({
      HATCHWAY_AGENTS_DRIVER: 'claude',
      HATCHWAY_DRIVERS: join(home, 'none'),
      ANTHROPIC_API_KEY: 'sk-the-hosts-own-key',
    }),
    hear: text => {
      printed += text
    },
  })
  const sentence =
    'The driver claude is not installed (driver_missing). Run on the host: npx hatchway agents add claude'
  expect(await installation.say('hello')).toContain(`I could not answer that. ${sentence}`)
  expect(await installation.runs()).toMatchObject([{ status: 'failed', error: sentence }])
  await until(async () => printed.includes(sentence))
  expect(await installation.hatchway('status')).toContain(sentence)
  const doctor = await installation.hatchway('doctor').catch((error: { stdout: string }) => error.stdout)
  expect(doctor.split('\n').filter(line => line.includes(sentence))).toEqual([expect.stringMatching(/^BAD /)])
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
    const installation = await openInstallation({
      sandbox: 'bubblewrap',
      environment: () => ({
        HATCHWAY_AGENTS_DRIVER: 'claude',
        HATCHWAY_MODEL_URL: `http://127.0.0.1:${port}`,
        ANTHROPIC_API_KEY: 'sk-that-is-no-longer-valid',
      }),
    })
    await installation.say('hello')
    await until(async () => (await installation.texts()).length === 2)
    const sentence = 'The model API refuses the host’s key.'
    expect(await installation.texts()).toEqual([
      expect.stringContaining(sentence),
      expect.stringContaining(`I could not answer that. ${sentence}`),
    ])
    // Requests that were under way together may all be refused; none follows.
    expect(asked).toBeLessThanOrEqual(3)
    expect(await installation.runs()).toHaveLength(1)
    expect(await installation.hatchway('status')).toContain(sentence)
  })
})
