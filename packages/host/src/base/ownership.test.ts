import {
  chownSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Live, openLive } from '../../../testing/src/daemon/in-process.ts'
import { until } from '../../../testing/src/until.ts'
import { createOwnership, giveGroup } from './ownership.ts'

const isRoot = process.getuid?.() === 0
const uidOf = (path: string) => lstatSync(path).uid
const quiet = pino({ level: 'silent' })

async function openWith(...folders: string[]): Promise<Live> {
  const live = await openLive({ agents: { sandbox: 'process' }, web: { enabled: 'no' } })
  onTestFinished(() => live.close())
  for (const folder of folders)
    await live.host.addGroup({
      folder,
      jid: `web:${folder}`,
      name: folder,
      main: folder === 'main',
      dialect: 'hatchway',
    })
  return live
}

/** As earlier versions left it: everything of every group belongs to one user. */
function asEarlier({ layout, host }: Live): void {
  const all = (path: string) => {
    lchownSync(path, 1000, 1000)
    if (lstatSync(path).isDirectory()) for (const name of readdirSync(path)) all(join(path, name))
  }
  for (const { folder } of host.store.groups()) {
    for (const name of readdirSync(join(layout.ipc, folder)))
      if (lstatSync(join(layout.ipc, folder, name)).isDirectory()) all(join(layout.ipc, folder, name))
    for (const room of [layout.groups, layout.worktrees])
      if (existsSync(join(room, folder))) all(join(room, folder))
  }
  host.store.setMeta('files_given_by', 'an earlier version')
}

test('each folder keeps its user for ever, also when its group is registered again, and shares it with no other', async () => {
  const live = await openWith('main', 'a', 'b')
  const { store } = live.host
  const users = ['main', 'a', 'b'].map(folder => store.agentUser(folder))
  expect(new Set(users).size).toBe(3)
  for (const user of users) {
    expect(user).toBeGreaterThan(1_879_048_192)
    expect(user).toBeLessThan(2_147_483_648)
  }
  await live.host.removeGroup('b')
  await live.host.addGroup({ folder: 'c', jid: 'web:c', name: 'C', main: false, dialect: 'hatchway' })
  expect(users).not.toContain(store.agentUser('c'))
  await live.host.addGroup({ folder: 'B', jid: 'web:b', name: 'B', main: false, dialect: 'hatchway' })
  expect(store.agentUser('B')).toBe(users[2])
})

describe.runIf(isRoot)('where the host is root (needs root)', () => {
  test('what a group has belongs to its own user from the beginning', async () => {
    const { layout, host } = await openWith('main', 'a')
    for (const folder of ['main', 'a']) {
      const user = host.store.agentUser(folder)
      expect(uidOf(join(layout.groups, folder))).toBe(user)
      for (const name of ['messages', 'tasks', 'input', 'responses'])
        expect(uidOf(join(layout.ipc, folder, name))).toBe(user)
      expect(uidOf(join(layout.ipc, folder))).toBe(0)
    }
  })

  test('files of an earlier version are given to their group’s user at the next start, and nothing else is', async () => {
    const live = await openWith('main', 'a')
    const { layout } = live
    const folder = join(layout.groups, 'a')
    mkdirSync(join(folder, '.home', 'deep', 'deeper'), { recursive: true })
    mkdirSync(join(layout.worktrees, 'a', 'src'), { recursive: true })
    mkdirSync(join(layout.ipc, 'a', 'tasks', '.tmp'))
    const outside = join(live.data, 'outside')
    mkdirSync(outside)
    writeFileSync(join(outside, 'secret'), '')
    chownSync(outside, 1000, 1000)
    chownSync(join(outside, 'secret'), 1000, 1000)
    const files = [
      join(folder, 'notes.md'),
      join(folder, '.home', 'deep', 'deeper', 'x'),
      join(layout.worktrees, 'a', 'src', 'x.ts'),
      join(layout.ipc, 'a', 'tasks', '.tmp', 'half.tmp'),
    ]
    for (const file of files) writeFileSync(file, '')
    symlinkSync(outside, join(folder, 'link'))
    symlinkSync(join(outside, 'secret'), join(folder, 'file-link'))
    asEarlier(live)
    writeFileSync(join(folder, 'operators'), '', { mode: 0o600 })
    await live.reopen()
    await live.start()
    await live.host.startAgents()
    await until(
      'it is known that all was given',
      () => live.host.store.meta('files_given_by') === 'each:same',
    )
    const user = live.host.store.agentUser('a')
    for (const path of [
      ...files,
      folder,
      join(folder, '.home'),
      join(folder, 'link'),
      join(folder, 'file-link'),
    ])
      expect(uidOf(path), path).toBe(user)
    expect(uidOf(join(layout.ipc, 'a', 'responses'))).toBe(user)
    expect(uidOf(join(layout.groups, 'main'))).toBe(live.host.store.agentUser('main'))
    // Behind a link, and what an operator has put there.
    expect([uidOf(outside), uidOf(join(outside, 'secret'))]).toEqual([1000, 1000])
    expect(uidOf(join(folder, 'operators'))).toBe(0)
  })

  test('a host that is ended in between goes on where it was, and the folder itself comes last', async () => {
    const live = await openWith('main', 'a')
    const { layout, host } = live
    const folder = join(layout.groups, 'a')
    for (let n = 0; n < 20; n++) {
      mkdirSync(join(folder, `d${n}`))
      writeFileSync(join(folder, `d${n}`, 'x'), '')
    }
    asEarlier(live)
    const user = host.store.agentUser('a')
    const owner = { uid: user, gid: user }
    const all = () =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(name => uidOf(join(folder, name)))
    let steps = 0
    const ended = giveGroup(layout, 'a', owner, async () => {
      if (++steps > 21) throw new Error('ended')
    })
    await expect(ended).rejects.toThrow('ended')
    expect(new Set(all())).toEqual(new Set([1000, user]))
    expect(uidOf(folder)).toBe(1000)
    const rest = createOwnership({ layout, owners: () => owner, store: host.store, rule: 'new', log: quiet })
    await rest.settle('a')
    expect(new Set([...all(), uidOf(folder)])).toEqual(new Set([user]))
  })

  test('`container.uid` gives all groups one user again', async () => {
    const live = await openWith('main', 'a')
    const shared = { uid: 4711, gid: 4711 }
    await createOwnership({
      layout: live.layout,
      owners: () => shared,
      store: live.host.store,
      rule: '4711:same',
      log: quiet,
    }).settle('a')
    expect(uidOf(join(live.layout.groups, 'a'))).toBe(4711)
    expect(uidOf(join(live.layout.ipc, 'a', 'tasks'))).toBe(4711)
    expect(uidOf(join(live.layout.ipc, 'main', 'tasks'))).not.toBe(4711)
  })
})
