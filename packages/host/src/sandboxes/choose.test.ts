import { expect, test } from 'vitest'
import { sandboxOrder } from '../config/names.ts'
import { chooseSandbox } from './choose.ts'
import type { Sandbox, SandboxName } from './types.ts'
import { openUsedEngines } from './used.ts'

/** A machine that has these. */
function machine(...names: SandboxName[]): Record<SandboxName, Sandbox> {
  const one = (name: SandboxName): Sandbox => ({
    name,
    isolated: name !== 'process',
    hasImages: false,
    check: async () => ({ available: names.includes(name), reason: `${name} was looked at.` }),
    start: () => Promise.reject(new Error('not in this test')),
    endOrphans: async () => [],
  })
  return {
    docker: one('docker'),
    podman: one('podman'),
    bubblewrap: one('bubblewrap'),
    process: one('process'),
  }
}

test.each([
  [['docker', 'podman', 'bubblewrap', 'process'], 'docker'],
  [['podman', 'bubblewrap', 'process'], 'podman'],
  [['bubblewrap', 'process'], 'bubblewrap'],
] satisfies [SandboxName[], SandboxName][])('of %j the safest is %s', async (names, expected) => {
  const choice = await chooseSandbox('auto', 'claude', machine(...names))
  expect(choice.sandbox?.name).toBe(expected)
  expect(choice.warning).toBeUndefined()
  expect(choice.considered.map(({ name }) => name)).toEqual(sandboxOrder)
  expect(choice.reason).toContain(`${expected} was looked at.`)
})

test('without any sandbox only the concierge runs, with a warning', async () => {
  const choice = await chooseSandbox('auto', 'concierge', machine('process'))
  expect(choice.sandbox?.name).toBe('process')
  expect(choice.warning).toContain('WITHOUT a sandbox')
})

test.each(['claude', 'command'] as const)('without any sandbox %s is not run', async driver => {
  const choice = await chooseSandbox('auto', driver, machine('process'))
  expect(choice.sandbox).toBeUndefined()
  expect(choice.reason).toContain('apt-get install bubblewrap')
})

test('process is taken for any driver where it is named, and the warning stays', async () => {
  const choice = await chooseSandbox('process', 'claude', machine('docker', 'process'))
  expect(choice.sandbox?.name).toBe('process')
  expect(choice.warning).toContain('WITHOUT a sandbox')
})

test('a configured sandbox that is missing is not replaced by another', async () => {
  const choice = await chooseSandbox('podman', 'concierge', machine('docker', 'process'))
  expect(choice.sandbox).toBeUndefined()
  expect(choice.reason).toContain('podman was looked at.')
})

test('an engine that cannot even be asked does not keep the others from being used', async () => {
  const all = machine('bubblewrap')
  const broken = { ...all, docker: { ...all.docker, check: () => Promise.reject(new Error('nonsense')) } }
  const choice = await chooseSandbox('auto', 'claude', broken)
  expect(choice.sandbox?.name).toBe('bubblewrap')
  expect(choice.considered[0]).toEqual({
    name: 'docker',
    available: false,
    reason: 'It could not be checked: nonsense',
  })
})

test('only engines that were used can hold something that is left over', () => {
  const meta = new Map<string, string>()
  const store = {
    meta: (key: string) => meta.get(key),
    setMeta: (key: string, value: string) => void meta.set(key, value),
  }
  const fresh = openUsedEngines(store)
  expect(fresh.all()).toEqual([])
  fresh.add('bubblewrap')
  meta.set('installation', 'x')
  expect(openUsedEngines(store).all()).toEqual(['bubblewrap'])
  // A data directory from before this was kept may have used any.
  meta.delete('engines')
  expect(openUsedEngines(store).all()).toEqual(sandboxOrder)
})

test('whoever was killed while the engines were tried may have left something in any of them', async () => {
  const meta = new Map([['engines', 'bubblewrap']])
  const store = {
    meta: (key: string) => meta.get(key),
    setMeta: (key: string, value: string) => void meta.set(key, value),
  }
  const killed = new Promise<never>(() => {})
  void openUsedEngines(store).trying(() => killed)
  const next = openUsedEngines(store)
  expect(next.all()).toEqual(sandboxOrder)
  expect(await next.trying(async () => 'found')).toBe('found')
  expect(openUsedEngines(store).all()).toEqual(['bubblewrap'])
})

test('where one is configured no other engine is asked', async () => {
  const all = machine('docker', 'podman', 'bubblewrap', 'process')
  const { considered } = await chooseSandbox('bubblewrap', 'claude', all)
  expect(considered.map(({ name }) => name)).toEqual(['bubblewrap'])
})
