import type { HostOffer } from '@hatchway/protocol'
import type { HostWork } from '../api/host.ts'
import type { Commands } from '../commands/registry.ts'
import type { Work } from '../commands/service-tools.ts'
import type { CurrentRun, HostRules } from '../commands/types.ts'
import type { Config } from '../config.ts'
import type { AllRunHooks } from '../runs/hooks.ts'

/** for what is done with the command itself */
const atOnceMs = 60_000

/** What an operator can ask for while no daemon runs. */
export const rulesWithoutDaemon: HostRules = {
  runOf: () => undefined,
  workMs: () => undefined,
  finishing: () => undefined,
  isHarmless: () => false,
}

export interface HostWorkRegistry extends HostWork {
  add(work: readonly Work[]): void
}

/** What the host itself does for agents beside lending them services. */
export function createHostWork(options: {
  config: Config
  commands: Pick<Commands, 'all'>
  /** what plugins add to runs */
  hooks: Pick<AllRunHooks, 'finish' | 'isHarmless'>
  /** what the group's agent is at */
  runOf(folder: string): CurrentRun | undefined
}): HostWorkRegistry {
  const { config, hooks } = options
  const workByName = new Map<string, Work>()

  const rules: HostRules = {
    runOf: options.runOf,
    workMs: name => workByName.get(name)?.timeoutMs,
    finishing: hooks.finish,
    isHarmless: hooks.isHarmless,
  }
  const workFor = (command: string, folder: string) =>
    workByName.get((command === 'finished_work' ? hooks.finish(folder)?.work : undefined) ?? command)

  return {
    add(all) {
      for (const work of all) workByName.set(work.name, work)
    },
    rules,
    work: name => workByName.get(name),
    workFor,
    offersTo(group) {
      const offer = (command: HostOffer['command'], isOffered: boolean): HostOffer[] =>
        isOffered ? [{ command, timeout_ms: workFor(command, group.folder)?.timeoutMs ?? atOnceMs }] : []
      return [
        ...offer('reset_context', config.agents.enabled === 'yes'),
        ...offer('finished_work', rules.runOf(group.folder)?.kind === 'task'),
        ...options.commands.all().flatMap(definition => definition.offer?.(group) ?? []),
      ]
    },
  }
}
