import type { OpenRuns } from '../api/host.ts'
import type { CurrentRun } from '../commands/types.ts'
import { type Config, settingsOf } from '../config.ts'

/**
 * Whether agents are run, and what is known of them. They are the last to be started, and perhaps never are:
 *
 *   not yet   no sandbox is chosen, nothing runs
 *             → running   their queue, schedule and sandbox are there
 *             → stopped   the host stops before that
 *   running   → stopped
 */
export interface Agents {
  /** undefined: not yet, or never */
  runs(): OpenRuns | undefined
  /** false: the host has stopped meanwhile, and these have to be stopped as well */
  areRunning(runs: OpenRuns): boolean
  isStopped(): boolean
  stop(): void
  /** what the group's agent is at */
  runOf(folder: string): CurrentRun | undefined
  /** whether the group's agent can reach nothing but its directory */
  isOffline(folder: string): boolean
  /** whether the group's agent sees the host's directories under other names */
  isInside(folder: string): boolean
}

export function createAgents(config: Config): Agents {
  let runs: OpenRuns | undefined
  let isStopped = false
  const sandboxOf = (folder: string) => settingsOf(config, folder).sandbox
  return {
    runs: () => runs,
    areRunning(opened) {
      if (!isStopped) runs = opened
      return !isStopped
    },
    isStopped: () => isStopped,
    stop() {
      isStopped = true
    },
    runOf: folder => runs?.queue.runOf(folder),
    isOffline: folder => runs?.choice().sandbox?.isolated === true && sandboxOf(folder) !== 'process',
    isInside: folder =>
      (sandboxOf(folder) ?? runs?.choice().sandbox?.name ?? config.agents.sandbox) !== 'process',
  }
}
