import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Group } from '@hatchway/protocol'
import type { Owner } from '@hatchway/spool'
import type { Logger } from 'pino'
import { textMessage } from '../channels/text-message.ts'
import type { Config } from '../config.ts'
import type { Layout } from '../layout.ts'
import { systemClock } from '../scheduler/clock.ts'
import { rightsOf } from '../scheduler/rights.ts'
import { createScheduler, type Scheduler } from '../scheduler/scheduler.ts'
import type { Positions } from '../store/positions.ts'
import type { Store } from '../store/types.ts'
import { type Agents, createAgents } from './agents.ts'
import { createInputBox } from './input-box.ts'
import { createLaunch } from './launch.ts'
import { createGlobalFolder } from './mounts.ts'
import { type Choice, chooseSandbox, createSandboxes } from './sandboxes/choose.ts'
import type { Sandbox } from './types.ts'

/** Sessions and schedule of a running daemon, put together. */
export interface OpenAgents {
  agents: Agents
  scheduler: Scheduler
  choice: Choice
  stop(): Promise<void>
}

export interface OpenAgentsOptions {
  config: Config
  layout: Layout
  store: Store
  positions: Positions
  owner: Owner | undefined
  typing(jid: string, on: boolean): void
  /** a message is stored */
  said(): void
  /** the group's container is about to be started, for a run that may have a context of its own */
  begins(folder: string, run: { id: string; isolated: boolean; taskId: string | null }): void
  /** the group's container is gone, and with it whoever waited for answers */
  gone(folder: string, runId: string): void
  tasksChanged(folder: string): void
  log: Logger
}

export async function openAgents(options: OpenAgentsOptions): Promise<OpenAgents> {
  const { config, layout, store, positions, owner, log } = options
  const installation = installationOf(store)
  createGlobalFolder(layout)
  const sandboxes = createSandboxes(config)
  const choice = await chooseSandbox(config.agents.sandbox, config.agents.driver, sandboxes)
  log.info({ sandbox: choice.sandbox?.name, reason: choice.reason }, 'agents run in this sandbox')
  if (choice.warning !== undefined) log.warn(choice.warning)

  // What a dead process left running may still write; it is ended before anything new starts (lesson 22).
  for (const { name, available } of choice.considered) {
    if (!available) continue
    const ended = await sandboxes[name].endOrphans(installation)
    if (ended.length > 0) log.warn({ sandbox: name, runs: ended }, 'runs of an earlier process were ended')
  }
  for (const run of store.agents.runs({ status: 'running' })) {
    store.agents.giveBack(run.id)
    options.gone(run.group, run.id)
    store.agents.updateRun(run.id, {
      status: 'failed',
      endedAt: Date.now(),
      error: 'The host stopped during the run.',
    })
  }

  const sandboxOf = async (group: Group): Promise<Sandbox> => {
    const settings = config.groups[group.folder]
    if (settings?.sandbox === undefined && settings?.driver === undefined) return required(choice)
    // Each engine is asked, and tried, when one has to be chosen: seconds that a start need not take.
    if (settings.sandbox !== undefined && settings.sandbox === choice.sandbox?.name) return choice.sandbox
    return required(
      await chooseSandbox(
        settings.sandbox ?? config.agents.sandbox,
        settings.driver ?? config.agents.driver,
        sandboxes,
      ),
    )
  }
  const launch = createLaunch({
    config,
    layout,
    installation,
    owner,
    store: store.agents,
    environment: process.env,
    log,
    now: () => new Date(),
  })
  const agents = createAgents({
    config,
    store: store.agents,
    group: store.group,
    sandboxName: choice.sandbox?.name ?? 'none',
    launch: async (start, group, isolated) => {
      options.begins(group.folder, { id: start.run_id, isolated, taskId: start.task?.id ?? null })
      return launch(start, group, await sandboxOf(group))
    },
    inputBox: group =>
      createInputBox({
        directory: join(layout.ipc, group.folder),
        dialect: group.dialect,
        staging: layout.staging,
        owner,
        now: () => new Date(),
      }),
    message: (group, text) => textMessage(positions.next(), group, text, Date.now()),
    said: options.said,
    gone: options.gone,
    typing: options.typing,
    log,
    now: Date.now,
  })
  const scheduler = createScheduler({
    store,
    config,
    log,
    clock: systemClock,
    run: agents.runTask,
    mayRun: rightsOf(store),
    changed: options.tasksChanged,
  })

  return {
    agents,
    scheduler,
    choice,
    async stop() {
      const noted = scheduler.stop()
      await agents.stop()
      await noted
    },
  }
}

function required({ sandbox, reason }: Choice): Sandbox {
  if (sandbox) return sandbox
  throw new Error(reason)
}

/** Marks what we start, so that we never end what another installation on this machine has started. */
function installationOf(store: Store): string {
  const known = store.meta('installation')
  if (known !== undefined) return known
  const made = randomUUID()
  store.setMeta('installation', made)
  return made
}
