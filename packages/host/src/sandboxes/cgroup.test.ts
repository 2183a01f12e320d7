import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openCgroups } from './cgroup.ts'

/**
 * The kernel of the machine that tests has one version of cgroups; bubblewrap.test.ts uses that one for real. What
 * would be written with the other is shown on a copy of its files.
 */
const limits = { memoryMb: 100, processes: 20, cpus: 1, temporaryMb: 1 }

function fake(files: Record<string, string>): string {
  const root = mkdtempSync(join(tmpdir(), 'hatchway-cgroup-'))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(root, path, '..'), { recursive: true })
    writeFileSync(join(root, path), content)
  }
  return root
}

test('version 2: the limits of a run are written into its directory', () => {
  const run = 'hatchway/ours@run'
  const root = fake({
    'cgroup.controllers': 'cpuset cpu io memory pids\n',
    'cgroup.subtree_control': '',
    'hatchway/cgroup.subtree_control': '',
    [`${run}/memory.max`]: '',
    [`${run}/memory.swap.max`]: '',
    [`${run}/memory.events`]: 'low 0\noom 1\noom_kill 1\n',
    [`${run}/pids.max`]: '',
    [`${run}/cpu.max`]: '',
  })
  const cgroups = openCgroups(root)
  expect(cgroups.limited).toEqual(['memory', 'processes', 'processors'])
  const cgroup = cgroups.create('ours', 'run', limits)
  const read = (name: string) => readFileSync(join(root, name), 'utf8')
  expect(read('hatchway/cgroup.subtree_control')).toBe('+memory +pids +cpu')
  expect(read(`${run}/memory.max`)).toBe('104857600')
  expect(read(`${run}/memory.swap.max`)).toBe('0')
  expect(read(`${run}/pids.max`)).toBe('22')
  expect(read(`${run}/cpu.max`)).toBe('100000 100000')
  expect(cgroup.entrances).toEqual([join(root, run, 'cgroup.procs')])
  expect(cgroup.outOfMemory()).toBe(true)
})

test('version 1: each kind has a tree of its own, and one that is missing is not promised', () => {
  const root = fake({
    'memory/cgroup.procs': '',
    'memory/hatchway/ours@run/memory.limit_in_bytes': '',
    'memory/hatchway/ours@run/memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\noom_kill 0\n',
    'pids/cgroup.procs': '',
    'pids/hatchway/ours@run/pids.max': '',
  })
  const cgroups = openCgroups(root)
  expect(cgroups.limited).toEqual(['memory', 'processes'])
  const cgroup = cgroups.create('ours', 'run', limits)
  expect(readFileSync(join(root, 'memory/hatchway/ours@run/memory.limit_in_bytes'), 'utf8')).toBe('104857600')
  expect(cgroup.outOfMemory()).toBe(false)
})

test('where nothing can be made, nothing is promised', () => {
  expect(openCgroups('/no/such/place').limited).toEqual([])
})
