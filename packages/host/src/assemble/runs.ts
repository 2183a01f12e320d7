import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Group } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { OpenRuns } from '../api/host.ts'
import { systemClock } from '../base/clock.ts'
import type { Layout } from '../base/layout.ts'
import type { Owners } from '../base/owners.ts'
import type { Retries } from '../base/retry.ts'
import type { Config } from '../config.ts'
import { createJobs } from '../plugins/jobs/jobs.ts'
import { createJobRules } from '../plugins/jobs/rules.ts'
import type { Room } from '../plugins/worktrees/inside.ts'
import type { Worktrees } from '../plugins/worktrees/worktrees.ts'
import { createInputBox } from '../runs/input-box.ts'
import { createLaunch, imageFor, userOf } from '../runs/launch.ts'
import { createModelHealth } from '../runs/model-gateway/health.ts'
import { refusalNotices, shownRefusals } from '../runs/notices.ts'
import { createRunQueue } from '../runs/run-queue.ts'
import { rightsOf } from '../runs/scheduler/rights.ts'
import { createScheduler } from '../runs/scheduler/scheduler.ts'
import { type Choice, checkSandbox, chooseSandbox, createSandboxes } from '../sandboxes/choose.ts'
import { createGlobalFolder } from '../sandboxes/mounts.ts'
import type { Sandbox } from '../sandboxes/types.ts'
import { openUsedEngines } from '../sandboxes/used.ts'
import { wipedAt } from '../store/contexts.ts'
import type { Positions } from '../store/positions.ts'
import { textMessage } from '../store/text-message.ts'
import type { Store } from '../store/types.ts'

/** How much of what an agent said is read to tell it what it had sent. */
const latelySaid = { limit: 100, characters: 1_000_000, within: 20_000 }

/** Sessions and schedule of a running daemon, put together. */
export interface OpenRunsOptions {
  config: Config
  layout: Layout
  store: Store
  positions: Positions
  owners: Owners
  typing(jid: string, on: boolean): void
  /** a message is stored */
  said(): void
  /** the group's container is about to be started */
  begins(folder: string, run: { taskId: string | null }): void
  /** somebody stopped the group's agent in the middle of its turn: its next run is to be told */
  cutOff(group: Group, runId: string, by: string): void
  /** nobody waits for what the group's agent had put to people in the turn that was stopped */
  turnStopped(folder: string): void
  /** whether something that the group's agent has asked for waits for a person */
  waitsForPeople(folder: string): boolean
  /** the group's container is gone, and with it whoever waited for answers */
  gone(folder: string, runId: string): void
  /** resolves once everything is decided that lies in the group's directories */
  decided(folder: string): Promise<void>
  /** whether everything that the group's last run had asked for is decided */
  mayBegin(folder: string): boolean
  tasksChanged(folder: string): void
  todosChanged(folder: string): void
  /** the model can be asked again, or cannot any more */
  modelChanged(): void
  /** what groups have of repositories; left out: nothing */
  worktrees?: Worktrees | undefined
  retries: Retries
  /** resolves once the group's files belong to its user */
  settle(folder: string): Promise<void>
  log: Logger
}

export async function openRuns(options: OpenRunsOptions): Promise<OpenRuns> {
  const { config, layout, store, positions, owners, retries, log } = options
  const used = openUsedEngines(store)
  const installation = installationOf(store)
  createGlobalFolder(layout)
  const sandboxes = createSandboxes(config, { installation })
  const choice = await used.trying(() =>
    chooseSandbox(config.agents.sandbox, config.agents.driver, sandboxes),
  )
  log.debug({ sandbox: choice.sandbox?.name, reason: choice.reason }, 'agents run in this sandbox')
  if (choice.warning !== undefined) log.warn(choice.warning)

  // What a dead process left running may still write; it is ended before anything new starts.
  for (const name of used.all()) {
    const known = choice.considered.find(considered => considered.name === name)
    const { available } = known ?? (await checkSandbox(sandboxes[name]))
    if (!available) continue
    const ended = await sandboxes[name].endOrphans(installation)
    if (ended.length > 0) log.warn({ sandbox: name, runs: ended }, 'runs of an earlier process were ended')
  }
  for (const run of store.agents.runs({ status: 'running' })) {
    const wasIdle =
      run.kind === 'chat' && store.agents.incoming({ runId: run.id, status: 'given' }).length === 0
    store.agents.giveBack(run.id)
    options.gone(run.group, run.id)
    // What it had said that it was done with, it was.
    const wasFinished =
      run.occurrenceId !== null && store.agents.occurrence(run.occurrenceId)?.status === 'done'
    const isOver = wasFinished || wasIdle
    store.agents.updateRun(run.id, {
      status: isOver ? 'done' : 'stopped',
      endedAt: Date.now(),
      error: isOver ? null : 'The host stopped during the run.',
    })
  }

  const jobs = createJobs({
    config,
    rules: createJobRules(config),
    store,
    installation,
    environment: process.env,
    retries,
    log,
    now: Date.now,
  })
  await jobs.recover()

  const sandboxOf = async (group: Group): Promise<Sandbox> => {
    const sandbox = await chosenFor(group)
    used.add(sandbox.name)
    return sandbox
  }
  const chosenFor = async (group: Group): Promise<Sandbox> => {
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
  const message = (group: Group, text: string) => textMessage(positions.next(), group, text, Date.now())
  const health = createModelHealth({
    config,
    environment: process.env,
    tell: (group, text) =>
      retries.inBackground('saying what is wrong with the model', () => {
        store.agents.finishTurn({
          runId: '',
          group: group.folder,
          usedIds: [],
          sessionId: null,
          keepSession: false,
          message: message(group, text),
        })
        options.said()
      }),
    changed: options.modelChanged,
    log,
    now: Date.now,
  })
  const launch = createLaunch({
    config,
    layout,
    installation,
    owners,
    store: store.agents,
    health,
    environment: process.env,
    log,
    now: () => new Date(),
    completeTodos(folder, ids) {
      const wanted = new Set(ids)
      const done = store.transaction(transaction => {
        for (const todo of transaction.todos(folder))
          if (!todo.done && wanted.has(todo.id))
            transaction.updateTodo(folder, { ...todo, done: true }, Date.now())
      })
      void Promise.resolve(done).then(
        () => options.todosChanged(folder),
        error => log.error({ err: error, group: folder }, 'todos could not be completed'),
      )
    },
    worktrees: options.worktrees,
  })
  const roomIn = (group: Pick<Group, 'folder'>, sandbox: Sandbox): Room => ({
    sandbox,
    installation,
    image: imageFor(config, group, sandbox),
    user: userOf(owners(group.folder)),
    limits: config.agents,
  })
  const agents = createRunQueue({
    config: { ...config, groups: instructed(config, options.worktrees) },
    store: store.agents,
    group: store.group,
    launch: async (start, group) => {
      options.begins(group.folder, { taskId: start.task?.id ?? null })
      const sandbox = await sandboxOf(group)
      const image = imageFor(config, group, sandbox) ?? null
      store.agents.updateRun(start.run_id, { sandbox: sandbox.name, image })
      await options.settle(group.folder)
      await options.worktrees?.ensure(group, roomIn(group, sandbox))
      return launch(start, group, sandbox)
    },
    inputBox: group =>
      createInputBox({
        directory: join(layout.ipc, group.folder),
        dialect: group.dialect,
        staging: layout.staging,
        owner: owners(group.folder),
        timezone: config.timezone,
        now: () => new Date(),
      }),
    lately: folder => store.latestMessages({ group: folder, ...latelySaid }).rows,
    wipedAt: folder => Number(store.meta(wipedAt(folder)) ?? 0),
    refusals: folder => refusalNotices(store.refusals.take(folder, shownRefusals)),
    message,
    modelProblem: health.problemOf,
    said: options.said,
    cutOff: options.cutOff,
    turnStopped: options.turnStopped,
    waitsForPeople: options.waitsForPeople,
    gone(folder, runId) {
      health.runEnded(runId)
      options.gone(folder, runId)
    },
    decided: options.decided,
    mayBegin: options.mayBegin,
    typing: options.typing,
    log,
    now: Date.now,
  })
  options.worktrees?.opened(async folder => {
    const group = store.group(folder)
    if (!group) throw new Error(`No group has the folder ${folder}.`)
    await options.settle(folder)
    return roomIn(group, await sandboxOf(group))
  })
  const mayRun = rightsOf(store)
  const scheduler = createScheduler({
    store,
    config,
    log,
    clock: systemClock,
    retries,
    run: (occurrence, task, begin) => (task.job ? jobs.run : agents.runTask)(occurrence, task, begin),
    mayRun: task => mayRun(task) ?? jobs.mayRun(task),
    changed: options.tasksChanged,
  })

  return {
    queue: agents,
    scheduler,
    choice,
    modelWarning: health.warning,
    async stop() {
      const noted = scheduler.stop()
      await Promise.all([agents.stop(), jobs.stop()])
      await noted
    },
  }
}

/** Whoever has a worktree is told what it is and how its commits get out. */
function instructed(config: Config, worktrees: Worktrees | undefined): Config['groups'] {
  const all = worktrees?.all() ?? []
  return {
    ...config.groups,
    ...Object.fromEntries(
      all.map(({ group, about }) => {
        const own = config.groups[group]
        return [group, { ...own, instructions: [own?.instructions, about].filter(Boolean).join('\n') }]
      }),
    ),
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
