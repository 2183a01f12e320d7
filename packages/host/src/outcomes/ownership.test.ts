import { spawnSync } from 'node:child_process'
import { chmodSync, lstatSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type Live, openLive } from '../../../testing/src/daemon/in-process.ts'
import { until } from '../../../testing/src/until.ts'

/** The container's processes are somebody else: what is theirs must be theirs, and the rest must not. */
const isRoot = process.getuid?.() === 0

const facts = (path: string) => {
  const { uid, gid, mode } = lstatSync(path)
  return { uid, gid, mode: (mode & 0o7777).toString(8) }
}
const ask = (id: string, type: string, payload: object) => JSON.stringify({ version: 1, id, type, payload })

/** A group that another group has registered, and a request of its own that was answered. */
async function registered(live: Live): Promise<void> {
  const main = { folder: 'main', jid: 'main@chat', name: 'Main', main: true, dialect: 'hatchway' } as const
  await live.host.addGroup(main)
  await live.start()
  const register = ask('r1', 'register_group', { jid: 'a@chat', name: 'A', folder: 'a' })
  writeFileSync(join(live.layout.ipc, 'main', 'tasks', 'register.json'), register)
  await until('it is registered', () => live.host.store.group('a') !== undefined)
  await until('it is answered', () => readdirSync(join(live.layout.ipc, 'main', 'responses')).length === 1)
  writeFileSync(
    join(live.layout.ipc, 'a', 'tasks', 'hello.json'),
    ask('r2', 'send_message', { text: 'hello' }),
  )
  await until('it is answered', () => readdirSync(join(live.layout.ipc, 'a', 'responses')).length === 1)
}

const drops = ['messages', 'tasks', 'groups', 'input', 'responses']

test.skipIf(!isRoot)(
  'a host that is root gives the container’s user what is its own (needs root)',
  async () => {
    const live = await openLive({ container: { uid: 1000, gid: 1001 } })
    onTestFinished(() => live.close())
    await registered(live)
    const { ipc, groups, state, spool, staging, errors } = live.layout
    const theirs = { uid: 1000, gid: 1001 }
    const ours = { uid: 0, gid: 0 }
    for (const drop of drops) expect(facts(join(ipc, 'a', drop))).toEqual({ ...theirs, mode: '700' })
    expect(facts(join(groups, 'a'))).toEqual({ ...theirs, mode: '700' })
    expect(facts(join(ipc, 'a', 'responses', 'r2.json'))).toEqual({ ...theirs, mode: '600' })

    expect(facts(join(ipc, 'a'))).toEqual({ ...ours, mode: '755' })
    for (const name of ['current_tasks.json', 'available_groups.json']) {
      expect(facts(join(ipc, 'a', name))).toEqual({ ...ours, mode: '644' })
    }
    for (const path of [state, spool, staging]) expect(facts(path)).toEqual({ ...ours, mode: '700' })
    expect(facts(errors)).toEqual({ ...ours, mode: '750' })

    // What the modes say, done by somebody who has nothing but them.
    chmodSync(live.data, 0o755)
    const asContainer = (script: string) =>
      spawnSync('sh', ['-c', script], { ...theirs, cwd: join(ipc, 'a'), encoding: 'utf8' })
    const used = asContainer(`
    set -e
    cat current_tasks.json available_groups.json responses/r2.json > /dev/null
    rm responses/r2.json
    echo '{"type":"message","chatJid":"a@chat","text":"from inside"}' > messages/1.json
  `)
    expect(used).toMatchObject({ status: 0, stderr: '' })
    await until('it is heard', () => live.host.store.messages({ group: 'a' }).length === 2)
    for (const script of [
      'echo x > current_tasks.json',
      'rm current_tasks.json',
      'mv tasks moved',
      'ls ../errors',
      'ls ../../state',
      'ls ../../spool',
    ]) {
      expect({ script, failed: asContainer(script).status !== 0 }).toEqual({ script, failed: true })
    }
  },
)

test.skipIf(isRoot)('a host that is not root keeps everything as its own (needs another user)', async () => {
  const live = await openLive()
  onTestFinished(() => live.close())
  await registered(live)
  const uid = process.getuid?.()
  for (const drop of drops)
    expect(facts(join(live.layout.ipc, 'a', drop))).toMatchObject({ uid, mode: '700' })
})

test('a host whose umask is strict still lets the container in', async () => {
  const before = process.umask(0o077)
  onTestFinished(() => void process.umask(before))
  const live = await openLive()
  onTestFinished(() => live.close())
  await registered(live)
  const { ipc } = live.layout
  const modes = [ipc, join(ipc, 'a'), join(ipc, 'a', 'current_tasks.json')].map(path => facts(path).mode)
  expect(modes).toEqual(['755', '755', '644'])
})
