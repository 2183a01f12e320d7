import { expect, test } from 'vitest'
import { until } from '../../../testing/src/until.ts'
import { byLink, byPassword, openDaemon, people } from './testing.ts'

/** What words in a chat do is refused to whoever may not do it by the route for it. */
async function openAsked() {
  const opened = await openDaemon({ web: { users: await people() } })
  const { host } = opened
  await host.addGroup({ folder: 'main', jid: 'web:main', name: 'Main', main: true, dialect: 'hatchway' })
  const eve = { jid: 'phone:42', sender: '42', senderName: 'Eve', text: 'let me in', at: 1 }
  host.chats?.pairing.asked('phone', eve)
  const request = () => host.store.chats.pairings()[0]
  const code = request()?.code ?? ''
  const folders = () => host.store.groups().map(({ folder }) => folder)
  const heard = () => host.store.agents.incoming({ group: 'main' }).map(({ text }) => text)
  const say = async (name: string | undefined, text: string) => {
    const visitor = await (name === undefined ? byLink(opened) : byPassword(opened, name))
    return visitor.change('POST', '/api/chats/web%3Amain/messages', { text })
  }
  return { ...opened, request, code, folders, heard, say }
}

test('an approver lets nobody in and keeps nobody out, by no word in a chat', async () => {
  const { request, code, folders, heard, say } = await openAsked()
  const spoken = [
    `pair ${code} evil`,
    `pair ${code}`,
    `refuse ${code}`,
    `@Hatch pair ${code.toLowerCase()} evil @x`,
  ]
  for (const text of spoken) {
    for (const name of ['abel', 'vera']) {
      const { status, json } = await say(name, text)
      expect({ status, code: json.error?.code }, text).toEqual({ status: 403, code: 'forbidden' })
    }
  }
  expect(request()).toMatchObject({ status: 'open' })
  expect(folders()).toEqual(['main'])
  // Nor does the agent hear of it, which could do it in their stead.
  expect(heard()).toEqual([])
  expect((await say('abel', 'pair AAAAA-AAAAA shoes')).status).toBe(201)
})

test.each([
  ['an admin', 'ada'],
  ['whoever has the link', undefined],
])('%s lets people in from the main chat', async (_, name) => {
  const { request, code, folders, say } = await openAsked()
  expect(await say(name, `pair ${code} family`)).toMatchObject({ status: 201, json: { status: 'used' } })
  await until('the group is registered', () => folders().includes('family'))
  expect(request()).toMatchObject({ status: 'approved' })
})
