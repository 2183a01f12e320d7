import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { post } from '@hatchway/spool'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Live, openLive } from '../../../testing/src/daemon/in-process.ts'
import { until } from '../../../testing/src/until.ts'

/** What is held before it happens, and refused in the end, is in `errors/` as if it had been refused at once. */
const token = `ghp_${'0123456789abcdefABCD'.repeat(2).slice(0, 36)}`
let live: Live
beforeAll(async () => {
  live = await openLive()
  for (const [folder, dialect] of [['nano', 'nanoclaw'] as const, ['own', 'hatchway'] as const])
    await live.host.addGroup({ folder, jid: `${folder}@chat`, name: folder, main: true, dialect })
  await live.start()
})
afterAll(() => live.close())

const approvals = () => {
  if (!live.host.chats?.approvals) throw new Error('there are no approvals')
  return live.host.chats.approvals
}
const open = () => live.host.services()?.requestQueue.open() ?? []
/** Its name looks like a secret, so that a person is asked. */
const registration = (folder: string) => ({ jid: `${folder}@chat`, name: token, folder, trigger: '@x' })
const send = (folder: string, content: object) => {
  const text = JSON.stringify(content)
  return { text, name: post(join(live.layout.ipc, folder, 'tasks'), text) }
}
const asked = async () => {
  await until('a person is asked', () => open().some(({ seq }) => approvals().isAsked(seq)))
  return String(open()[0]?.seq)
}
const decide = async (decision: 'allow' | 'deny') => {
  const id = await asked()
  approvals().decide(id, { decision })
  return id
}
const claimed = () =>
  readdirSync(live.layout.spool, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
const isOver = () => until('nothing waits', () => open().length === 0 && claimed().length === 0)
const refused = (id: string) => {
  const entry = live.host.quarantine.find(id)
  return entry && { ...entry, text: readFileSync(live.host.quarantine.pathOf(entry), 'utf8') }
}

test('a person says no', async () => {
  const { text } = send('nano', { type: 'register_group', ...registration('new') })
  const id = await decide('deny')
  await isOver()
  expect(refused(id)).toMatchObject({ code: 'denied', type: 'register_group', source_group: 'nano', text })
})

test('a person says no after a restart', async () => {
  const { text } = send('nano', { type: 'register_group', ...registration('new') })
  await asked()
  await live.reopen()
  await live.start()
  const id = await decide('deny')
  await isOver()
  expect(refused(id)).toMatchObject({ code: 'denied', text })
})

test('a person says yes to what cannot be done', async () => {
  const { text } = send('nano', { type: 'register_group', ...registration('own') })
  const id = await decide('allow')
  await isOver()
  expect(refused(id)).toMatchObject({ code: 'conflict', text })
})

test('what is allowed and done, or taken back, is not there', async () => {
  send('nano', { type: 'register_group', ...registration('new') })
  const done = await decide('allow')
  await isOver()
  expect(live.host.store.group('new')).toBeDefined()
  send('own', { version: 1, id: 'r-1', type: 'register_group', payload: registration('newer') })
  const back = await asked()
  send('own', { version: 1, id: 'r-2', type: 'cancel_request', payload: { request_id: 'r-1' } })
  await until('it is answered', () => existsSync(join(live.layout.ipc, 'own', 'responses', 'r-1.json')))
  await isOver()
  expect([refused(done), refused(back)]).toEqual([undefined, undefined])
})
