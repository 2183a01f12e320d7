import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { post } from '@hatchway/spool'
import { expect, onTestFinished, test } from 'vitest'
import { openLive } from '../../../../testing/src/daemon/in-process.ts'
import { until } from '../../../../testing/src/until.ts'
import { saying } from './testing.ts'
import type { ChannelHost, KnownChat } from './types.ts'

const minute = 60_000
const iso = (at: number) => new Date(at).toISOString()

/** A host with main groups of two dialects and a group of people, on a platform that can list its chats. */
async function open() {
  const live = await openLive()
  onTestFinished(() => live.close())
  const listed: KnownChat[] = []
  const connected = Promise.withResolvers<ChannelHost>()
  const add = (folder: string, main: boolean, dialect: 'hatchway' | 'nanoclaw') =>
    live.host.addGroup({ folder, jid: `phone:${folder}`, name: folder, main, dialect })
  await add('main', true, 'hatchway')
  await add('nano', true, 'nanoclaw')
  await add('family', false, 'hatchway')
  await add('quiet', false, 'hatchway')
  await live.start()
  await live.host.chats?.channels.attach({
    name: 'phone',
    messageLimit: 1000,
    reaches: jid => jid.startsWith('phone:'),
    connect: async given => connected.resolve(given),
    send: async () => {},
    chats: async () => listed,
  })
  await live.host.chats?.connect()
  const phone = await connected.promise
  const inIpc = (...path: string[]) => join(live.layout.ipc, ...path)
  let count = 0
  const command = async (type: string, payload: object = {}) => {
    const id = `c${++count}`
    const directory = type === 'send_message' ? 'messages' : 'tasks'
    post(inIpc('main', directory), JSON.stringify({ version: 1, id, type, payload }))
    await until(`${type} is answered`, () => existsSync(inIpc('main', 'responses', `${id}.json`)))
  }
  /** what the agents of both find */
  const lists = async () => {
    await command('refresh_groups')
    const [own, nano] = ['main', 'nano'].map(folder =>
      JSON.parse(readFileSync(inIpc(folder, 'available_groups.json'), 'utf8')),
    )
    return { own, nano }
  }
  return { live, phone, listed, command, lists }
}

test('lists of chats say when somebody last said something in each, whoever lists them', async () => {
  const { live, phone, listed, command, lists } = await open()
  const now = Date.now()
  listed.push(
    { jid: 'phone:1', name: 'Chess club', isGroup: true },
    { jid: 'phone:2', name: 'Neighbours', isGroup: true },
    { jid: 'phone:3', name: 'Parents', isGroup: true, lastActivity: now - 30 * minute },
    { jid: 'phone:family', name: 'Family', isGroup: true },
    { jid: 'phone:quiet', name: 'Quiet', isGroup: true },
  )
  await command('refresh_groups')
  await until('they are listed', () => live.host.store.chats.known('phone:quiet') !== undefined)
  // Strangers named them: who wants to read that counts as having read strangers' words.
  await command('show_withheld')

  phone.knows({ jid: 'phone:2', name: 'Neighbours', isGroup: true })
  await phone.receive(saying('phone:2', 'hello', { at: now - 20 * minute }))
  phone.knows({ jid: 'phone:family', name: 'Family', isGroup: true })
  await phone.receive(saying('phone:family', 'hello', { at: now - 10 * minute }))
  const { own, nano } = await lists()
  expect(own.groups.map(({ jid, last_activity }: Record<string, string>) => [jid, last_activity])).toEqual([
    ['phone:main', null],
    ['phone:nano', null],
    ['phone:family', iso(now - 10 * minute)],
    ['phone:quiet', null],
  ])
  expect(own.chats).toEqual([
    { jid: 'phone:2', name: 'Neighbours', last_activity: iso(now - 20 * minute) },
    { jid: 'phone:3', name: 'Parents', last_activity: iso(now - 30 * minute) },
    { jid: 'phone:1', name: 'Chess club', last_activity: null },
  ])
  const shown = (jid: string) => nano.groups.find((group: { jid: string }) => group.jid === jid)
  expect(shown('phone:family')).toMatchObject({ lastActivity: iso(now - 10 * minute), isRegistered: true })
  // Its readers take text for a time, and never nothing.
  const quiet = live.host.store.group('quiet')
  expect(shown('phone:quiet')).toMatchObject({ lastActivity: quiet?.added_at, isRegistered: true })
  expect(shown('phone:1')).toMatchObject({ lastActivity: iso(0), isRegistered: false })
})

test('what an agent says is activity of the chat it says it in, and an older message changes nothing', async () => {
  const { live, phone, command, lists } = await open()
  const at = Date.now()
  await command('send_message', { jid: 'phone:family', text: 'hello' })
  const active = live.host.store.group('family')?.last_activity
  expect(Date.parse(active ?? '')).toBeGreaterThanOrEqual(at)
  await phone.receive(saying('phone:family', 'sent while nobody was there', { at: at - minute }))
  const { own } = await lists()
  const [main, , family] = own.groups
  expect([main.last_activity, family.last_activity]).toEqual([null, active])
})

test('what a registered chat’s name and address become leaves its activity as it is, and so does a restart', async () => {
  const { live, phone } = await open()
  const at = Date.now() - minute
  await phone.receive(saying('phone:family', 'hello', { at }))
  for (const name of ['family', 'The Smiths']) phone.knows({ jid: 'phone:family', name, isGroup: true })
  await phone.moved('phone:family', 'phone:-100')
  const expected = { name: 'The Smiths', jid: 'phone:-100', last_activity: iso(at) }
  expect(live.host.store.group('family')).toMatchObject(expected)
  await live.reopen()
  expect(live.host.store.group('family')).toMatchObject(expected)
})
