import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { until } from '../base/pause.ts'
import { platform } from '../base/platform.ts'
import { signal } from '../base/processes.ts'
import type { SandboxSpec } from './types.ts'

/**
 * Limits for a whole run, kept by the kernel, for bubblewrap (container engines do it themselves). Needs a host that
 * may make directories where the kernel keeps them, which is root. Like an engine's, our directories lie at the top: a service
 * unit that limits the daemon does not limit its runs.
 */
export interface Cgroups {
  /** what is limited here, in words; empty: nothing can be */
  limited: readonly string[]
  create(installation: string, runId: string, limits: SandboxSpec['limits']): Cgroup
  /** ends everything an earlier process left in directories of this installation; its run ids */
  endOrphans(installation: string, live: ReadonlySet<string>): Promise<readonly string[]>
}

interface Cgroup {
  /** a process enters by writing 0 into each of these */
  entrances: readonly string[]
  outOfMemory(): boolean
  remove(): Promise<void>
}

const home = 'hatchway'
const separator = '@'
const period = 100_000

type Kind = 'memory' | 'pids' | 'cpu'
const words: Readonly<Record<Kind, string>> = { memory: 'memory', pids: 'processes', cpu: 'processors' }

/** One directory tree of the kernel's: version 2 has one for everything, version 1 one for each kind. */
interface Tree {
  path: string
  version: 1 | 2
  kinds: readonly Kind[]
}

function treesBelow(root: string): Tree[] {
  const all: Kind[] = ['memory', 'pids', 'cpu']
  const listed = join(root, 'cgroup.controllers')
  if (existsSync(listed)) {
    const kinds = readFileSync(listed, 'utf8').trim().split(' ')
    return [{ path: root, version: 2, kinds: all.filter(kind => kinds.includes(kind)) }]
  }
  return all
    .filter(kind => existsSync(join(root, kind, 'cgroup.procs')))
    .map(kind => ({ path: join(root, kind), version: 1, kinds: [kind] }))
}

/** The trees in which we may make directories, each with ours in it. */
function usableTrees(root: string): Tree[] {
  const usable: Tree[] = []
  for (const tree of treesBelow(root)) {
    const parent = join(tree.path, home)
    try {
      mkdirSync(parent, { recursive: true })
      if (tree.version === 2) {
        const wanted = tree.kinds.map(kind => `+${kind}`).join(' ')
        writeFileSync(join(tree.path, 'cgroup.subtree_control'), wanted)
        writeFileSync(join(parent, 'cgroup.subtree_control'), wanted)
      }
      usable.push({ ...tree, path: parent })
    } catch (error) {
      // Not ours to make: an ordinary user, or a container's read-only view.
      if (!(error instanceof Error && 'code' in error)) throw error
    }
  }
  return usable
}

function values(tree: Tree, limits: SandboxSpec['limits']): [file: string, value: string][] {
  const bytes = String(limits.memoryMb * 1_048_576)
  const quota = Math.min(limits.cpus, availableParallelism()) * period
  // bubblewrap itself is two processes.
  const processes = String(limits.processes + 2)
  const of: Record<Kind, [string, string][]> =
    tree.version === 2
      ? {
          memory: [
            ['memory.max', bytes],
            ['memory.swap.max', '0'],
          ],
          pids: [['pids.max', processes]],
          cpu: [['cpu.max', `${quota} ${period}`]],
        }
      : {
          memory: [
            ['memory.limit_in_bytes', bytes],
            ['memory.memsw.limit_in_bytes', bytes],
          ],
          pids: [['pids.max', processes]],
          cpu: [
            ['cpu.cfs_period_us', String(period)],
            ['cpu.cfs_quota_us', String(quota)],
          ],
        }
  return tree.kinds.flatMap(kind => of[kind])
}

const members = (directory: string): number[] => {
  const file = join(directory, 'cgroup.procs')
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean).map(Number) : []
}

/** Only an empty one can be removed, and the kernel needs a moment after the last process is gone. */
const removeEmpty = (directory: string) =>
  until(2000, () => {
    try {
      rmdirSync(directory)
      return true
    } catch (error) {
      if (!(error instanceof Error && 'code' in error)) throw error
      return error.code === 'ENOENT'
    }
  })

/** `root`: where the system keeps them; undefined: it has none. */
export function openCgroups(root = platform.cgroups): Cgroups {
  let found: Tree[] | undefined
  const trees = () => {
    found ??= root === undefined ? [] : usableTrees(root)
    return found
  }
  return {
    get limited() {
      return trees().flatMap(tree => tree.kinds.map(kind => words[kind]))
    },
    create(installation, runId, limits) {
      const name = `${installation}${separator}${runId}`
      const directories = trees().map(tree => {
        const path = join(tree.path, name)
        mkdirSync(path, { recursive: true })
        for (const [file, value] of values(tree, limits)) {
          // A kernel without swap accounting has no file for it.
          if (existsSync(join(path, file))) writeFileSync(join(path, file), value)
        }
        return path
      })
      return {
        entrances: directories.map(path => join(path, 'cgroup.procs')),
        outOfMemory: () =>
          directories
            .flatMap(path => [join(path, 'memory.events'), join(path, 'memory.oom_control')])
            .some(file => existsSync(file) && /^oom_kill [1-9]/m.test(readFileSync(file, 'utf8'))),
        async remove() {
          for (const path of directories) await removeEmpty(path)
        },
      }
    },
    async endOrphans(installation, live) {
      const runs = new Set<string>()
      for (const tree of trees()) {
        for (const name of readdirSync(tree.path)) {
          if (!name.startsWith(installation + separator)) continue
          const runId = name.slice(installation.length + separator.length)
          if (live.has(runId)) continue
          const path = join(tree.path, name)
          await until(5000, () => {
            const left = members(path)
            if (left.length > 0) runs.add(runId)
            for (const pid of left) signal(pid, 'SIGKILL')
            return left.length === 0
          })
          await removeEmpty(path)
        }
      }
      return [...runs]
    },
  }
}
