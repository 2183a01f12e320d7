import type { HostOffer } from '@hatchway/protocol'
import type { HostWork } from '../api/host.ts'
import type { Layout } from '../base/layout.ts'
import type { Owners } from '../base/owners.ts'
import type { Work } from '../commands/service-tools.ts'
import type { CurrentRun, HostRules } from '../commands/types.ts'
import type { Config } from '../config.ts'
import type { Effects } from '../outcomes/effects.ts'
import type { Deploys } from '../plugins/deploy/deploys.ts'
import { createJobRules } from '../plugins/jobs/rules.ts'
import { createPeriodicAgents } from '../plugins/periodic/periodic.ts'
import { createFinishedWork } from '../plugins/worktrees/finished-work.ts'
import type { Worktrees } from '../plugins/worktrees/worktrees.ts'
import type { Store } from '../store/types.ts'

/** What the host itself does for agents beside lending them services, put together for a daemon. */
/** for what is done with the command itself */
const atOnceMs = 60_000

export interface WorksOptions {
  config: Config
  layout: Layout
  owners: Owners
  store: Store
  effects: Effects
  /** put together elsewhere, as not only agents ask for it */
  works: readonly Work[]
  deploys: Deploys
  /** left out: no repository is configured */
  worktrees?: Worktrees | undefined
  /** what the group's agent is at */
  runOf(folder: string): CurrentRun | undefined
}

/** What an operator can ask for while no daemon runs. */
export const rulesWithoutDaemon = (config: Config): HostRules => ({
  runOf: () => undefined,
  workMs: () => undefined,
  jobs: createJobRules(config),
  worktree: () => undefined,
})

export function openHostWork(options: WorksOptions): HostWork {
  const { config, layout, owners, store, effects } = options
  const works = new Map<string, Work>()
  const take = (work: Work) => works.set(work.name, work)

  const periodic = createPeriodicAgents({
    config,
    layout,
    owners,
    store,
    effects,
    now: () => new Date(),
  })
  take(periodic.work)
  for (const work of options.works) take(work)
  const { worktrees } = options
  if (worktrees) {
    take(worktrees.work)
    take(createFinishedWork({ worktrees, store, effects, now: Date.now }))
  }
  const { deploys } = options
  if (deploys.work) take(deploys.work)

  const rules: HostRules = {
    runOf: options.runOf,
    workMs: name => works.get(name)?.timeoutMs,
    deployProblem: deploys.problem,
    jobs: createJobRules(config),
    worktree: folder => worktrees?.of(folder),
  }
  const offer = (command: HostOffer['command'], isOffered: boolean): HostOffer[] =>
    isOffered ? [{ command, timeout_ms: works.get(command)?.timeoutMs ?? atOnceMs }] : []

  return {
    rules,
    work: name => works.get(name),
    periodic,
    worktrees,
    deploys,
    offersTo: ({ folder, main }) => [
      ...offer('reset_context', config.agents.enabled === 'yes'),
      ...offer('finished_work', rules.runOf(folder)?.kind === 'task'),
      ...offer('sync_worktree', rules.worktree(folder) !== undefined),
      ...offer('schedule_host_job', main && rules.jobs !== undefined),
      ...offer('create_periodic_agent', main),
      ...offer('deploy', main && works.has('deploy')),
    ],
  }
}
