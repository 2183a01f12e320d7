import { spawn } from 'node:child_process'
import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import { until, within } from '../base/pause.ts'
import { platform } from '../base/platform.ts'
import { markedProcesses, markOf, markVariable, signal } from '../base/processes.ts'
import { exitOf, stillborn, watch } from './child.ts'
import type { Sandbox, SandboxSpec } from './types.ts'

/**
 * No sandbox at all: the run is a process of the host, in a process group of its own. Nothing is hidden from it and
 * nothing is limited; `mounts`, `image` and `limits` mean nothing here.
 */
export interface ProcessOptions {
  /** how long a run may take to end by itself after SIGTERM */
  graceMs?: number
}

export function createProcessSandbox(options: ProcessOptions = {}): Sandbox {
  const graceMs = options.graceMs ?? 2000
  const live = new Set<string>()

  const stop = async (members: () => number[], patienceMs: number): Promise<void> => {
    for (const pid of members()) signal(pid, 'SIGTERM')
    if (await until(patienceMs, () => members().length === 0)) return
    // What forks while it is being ended is met again in the next round.
    await until(10_000, () => {
      const left = members()
      for (const pid of left) signal(pid, 'SIGKILL')
      return left.length === 0
    })
  }

  return {
    name: 'process',
    isolated: false,
    hasImages: false,
    check: async () => ({
      available: true,
      reason: 'Works everywhere and isolates nothing: the agent can do whatever this user can.',
    }),
    async start(spec) {
      const [program, ...args] = spec.command ?? []
      if (program === undefined)
        return stillborn('', 'Without an image there must be a command. Name one, or use docker or podman.')
      const child = spawn(program, args, {
        cwd: spec.workingDirectory,
        env: { ...spec.environment, [markVariable]: markOf('process', spec.installation, spec.runId) },
        stdio: ['pipe', 'pipe', 'pipe'],
        detached: true,
        ...identity(spec, program),
      })
      const watched = watch(child)
      const { pid } = child
      if (pid === undefined) {
        const { failure } = await watched.ended
        return stillborn('', `${program} could not be started: ${failure}`)
      }
      live.add(spec.runId)
      // The group, and whatever has left it but still carries the mark.
      const members = () => [
        ...new Set([
          ...platform
            .processes()
            .filter(entry => entry.group === pid)
            .map(entry => entry.pid),
          ...markedProcesses('process', spec.installation, spec.runId).map(entry => entry.pid),
        ]),
      ]
      const exited = watched.ended.then(async ({ code, signal: name }) => {
        // What it has started ends with it, however it ended.
        if (members().length > 0) await stop(members, graceMs)
        live.delete(spec.runId)
        return exitOf(code, name)
      })
      return {
        name: String(pid),
        stdin: watched.stdin,
        stdout: watched.stdout,
        stderr: watched.stderr,
        exited,
        async kill() {
          await stop(members, graceMs)
          await within(5000, exited)
        },
      }
    },
    async endOrphans(installation) {
      const orphans = () => markedProcesses('process', installation).filter(({ runId }) => !live.has(runId))
      const found = new Set(orphans().map(({ runId }) => runId))
      if (found.size > 0) await stop(() => orphans().map(({ pid }) => pid), graceMs)
      return [...found]
    },
  }
}

/**
 * A host that is root runs it as the agents' user, as every sandbox does, so that files end up with the same owner.
 * Where that user cannot reach the files (a project in /root), it runs as root: the other choice is not to run.
 */
function identity(spec: SandboxSpec, program: string): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {}
  const paths = [
    `${spec.workingDirectory}/.`,
    program,
    ...(spec.command ?? []).filter(word => word.startsWith('/')),
  ]
  return paths.every(path => canReach(path, spec.user)) ? spec.user : {}
}

function canReach(path: string, user: { uid: number; gid: number }): boolean {
  for (let at = dirname(path); ; at = dirname(at)) {
    const found = statSync(at, { throwIfNoEntry: false })
    if (!found) return true
    const shift = found.uid === user.uid ? 6 : found.gid === user.gid ? 3 : 0
    if (((found.mode >> shift) & 1) === 0) return false
    if (at === dirname(at)) return true
  }
}
