import { expect, test } from 'vitest'
import { createProcessSandbox } from '../sandboxes/process.ts'
import { combineHooks, type Room, type RunHooks } from './hooks.ts'

const room: Room = {
  sandbox: createProcessSandbox(),
  installation: 'here',
  image: undefined,
  user: { uid: 1, gid: 1 },
  limits: { memoryMb: 1, processes: 1, cpus: 1, temporaryMb: 1 },
}
const traits = (name: string) => ({
  action: { name, summary: name, payload: {} },
  reach: 'dangerous' as const,
  reads: { corrupted: false, secret: false },
})
const hookOf = (name: string, told: string[] = []): RunHooks => ({
  prepare: async ({ folder }) => void told.push(`${name} prepares ${folder}`),
  mounts: folder =>
    folder === 'work'
      ? { mounts: [{ from: `/${name}`, to: `/in/${name}`, writable: false }], environment: { [name]: '1' } }
      : undefined,
  instructions: folder => (folder === 'work' ? `use ${name}` : undefined),
  shares: folder => (folder === 'work' ? `${name}:site` : undefined),
  isHarmless: (_, command) => command === name,
  finish: folder => (folder === 'work' ? { work: name, traits: traits(name) } : undefined),
  opened: rooms => void told.push(`${name} ${rooms ? 'has rooms' : 'has none'}`),
})

test('a run gets what each plugin adds, in the order of the plugins', async () => {
  const told: string[] = []
  const all = combineHooks([hookOf('a', told), {}, hookOf('b', told)])
  await all.prepare({ folder: 'work' }, room)
  all.opened(undefined)
  expect(told).toEqual(['a prepares work', 'b prepares work', 'a has none', 'b has none'])
  expect(all.mounts('work', { isolated: true })).toEqual({
    mounts: [
      { from: '/a', to: '/in/a', writable: false },
      { from: '/b', to: '/in/b', writable: false },
    ],
    environment: { a: '1', b: '1' },
  })
  expect(all.instructions('work')).toEqual(['use a', 'use b'])
  expect(all.shares('work')).toEqual(['a:site', 'b:site'])
  expect(all.isHarmless('work', 'b')).toBe(true)
  expect(all.finish('work')?.work).toBe('a')
})

test('a group that no plugin knows gets nothing', () => {
  const all = combineHooks([hookOf('a'), {}])
  expect(all.mounts('other', { isolated: true })).toEqual({ mounts: [], environment: {} })
  expect(all.instructions('other')).toEqual([])
  expect(all.shares('other')).toEqual([])
  expect(all.isHarmless('other', 'curl')).toBe(false)
  expect(all.finish('other')).toBeUndefined()
})

test('what keeps one plugin from preparing keeps the run from beginning', async () => {
  const refusing: RunHooks = { prepare: () => Promise.reject(new Error('there is no room')) }
  const all = combineHooks([refusing])
  await expect(all.prepare({ folder: 'work' }, room)).rejects.toThrow('there is no room')
})
