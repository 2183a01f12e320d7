import type { Group } from '@hatchway/protocol'
import type { Traits } from '../guard/guard.ts'
import type { Mount, Sandbox, SandboxSpec } from '../sandboxes/types.ts'

/** Where a program of the host's own can be run for a group: in the sandbox its agent would get. */
export interface Room {
  sandbox: Sandbox
  installation: string
  image: string | undefined
  user: SandboxSpec['user']
  limits: SandboxSpec['limits']
}

/** What a sandbox gets for one run. */
export interface RunMounts {
  mounts: readonly Mount[]
  environment: Readonly<Record<string, string>>
}

/** Work that has to be done before a scheduled run counts as finished. */
interface FinishingWork {
  /** by its name among the plugin's `work` */
  work: string
  /** what the guard judges it by */
  traits: Traits
}

/** What a plugin adds to the runs of a group's agent. Every part may be left out. */
export interface RunHooks {
  /** before a sandbox is started; throws with the reason if the run cannot begin */
  prepare?(group: Pick<Group, 'folder'>, room: Room): Promise<void>
  /** what the sandbox gets beside everything else */
  mounts?(folder: string, sandbox: Pick<Sandbox, 'isolated'>): RunMounts | undefined
  /** what the agent is told beside its group's instructions */
  instructions?(folder: string): string | undefined
  /** the name of what this group shares with others through this plugin; `host.share` says who has written to it */
  shares?(folder: string): string | undefined
  /** whether a shell command is harmless in a sandbox without a network, although nothing else says so */
  isHarmless?(folder: string, command: string): boolean
  /** asked when an agent says that its scheduled run is finished; one plugin may answer for a group, the first does */
  finish?(folder: string): FinishingWork | undefined
  /** agents are run from now on; undefined: none are, on this host */
  opened?(rooms: ((folder: string) => Promise<Room>) | undefined): void
}

/** The hooks of all plugins as one. */
export interface AllRunHooks {
  add(hooks: readonly RunHooks[]): void
  prepare(group: Pick<Group, 'folder'>, room: Room): Promise<void>
  mounts(folder: string, sandbox: Pick<Sandbox, 'isolated'>): RunMounts
  instructions(folder: string): readonly string[]
  shares(folder: string): readonly string[]
  isHarmless(folder: string, command: string): boolean
  finish(folder: string): FinishingWork | undefined
  opened(rooms: ((folder: string) => Promise<Room>) | undefined): void
}

export function combineHooks(initial: readonly RunHooks[] = []): AllRunHooks {
  const hooks = [...initial]
  return {
    add(more) {
      hooks.push(...more)
    },
    async prepare(group, room) {
      for (const hook of hooks) await hook.prepare?.(group, room)
    },
    mounts(folder, sandbox) {
      const all = hooks.flatMap(hook => hook.mounts?.(folder, sandbox) ?? [])
      return {
        mounts: all.flatMap(({ mounts }) => mounts),
        environment: Object.fromEntries(all.flatMap(({ environment }) => Object.entries(environment))),
      }
    },
    instructions: folder => hooks.flatMap(hook => hook.instructions?.(folder) ?? []),
    shares: folder => hooks.flatMap(hook => hook.shares?.(folder) ?? []),
    isHarmless: (folder, command) => hooks.some(hook => hook.isHarmless?.(folder, command) === true),
    finish(folder) {
      for (const hook of hooks) {
        const work = hook.finish?.(folder)
        if (work) return work
      }
      return undefined
    },
    opened(rooms) {
      for (const hook of hooks) hook.opened?.(rooms)
    },
  }
}
