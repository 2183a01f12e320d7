import { expect, onTestFinished, test, vi } from 'vitest'
import { folder, openDaemon, send } from '../../api/testing.ts'
import { registerGroups } from '../../assemble/register.ts'
import { configSchema } from '../../config.ts'
import { sign } from './signature.ts'

const secret = 'a secret that is long enough'

test('a webhook’s message is taken with a signature, under whatever name it came, without a console', async () => {
  vi.stubEnv('HATCHWAY_WEBHOOK_SECRET', secret)
  onTestFinished(() => void vi.unstubAllEnvs())
  const data = folder('webhook')
  await registerGroups({ ...configSchema.parse({ logLevel: 'silent', durability: 'process' }), data }, [
    { folder: 'shop', jid: 'webhook:shop', name: 'Shop', main: true, dialect: 'hatchway' },
  ])
  const { port, web, host, agentsReady } = await openDaemon({ web: { enabled: 'no' } }, data)
  // Only then people and programs are heard.
  await agentsReady
  expect(web.link).toBeUndefined()
  expect((await send({ port }, '/')).status).toBe(404)
  expect((await send({ port }, '/api/chats')).status).toBe(404)
  const body = JSON.stringify({
    type: 'incoming',
    id: 'e1',
    jid: 'webhook:shop',
    sender: 'till',
    text: 'one coffee',
  })
  const timestamp = String(Math.floor(Date.now() / 1000))
  const headers = {
    host: 'hooks.example.com',
    'x-hatchway-timestamp': timestamp,
    'x-hatchway-signature': sign(secret, timestamp, body),
  }
  const hook = (name: string, change: { headers?: Record<string, string>; body?: string } = {}) =>
    send({ port }, `/webhook/${name}`, { method: 'POST', headers, body, ...change })
  expect((await hook('shop')).status).toBe(202)
  const again = await hook('shop')
  expect([again.status, again.json]).toEqual([200, { repeated: true }])
  expect((await hook('other')).status).toBe(400)
  expect((await hook('shop', { body: `${body} ` })).status).toBe(403)
  expect((await hook('shop', { headers: {} })).status).toBe(403)
  expect((await hook('shop', { body: 'x'.repeat(70_000) })).status).toBe(413)
  expect(host.store.agents.incoming({})).toMatchObject([
    { group: 'shop', channel: 'webhook', externalId: 'e1', sender: 'till', status: 'waiting' },
  ])
})
