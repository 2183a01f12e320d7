import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Group, Task } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { OpenRuns } from '../api/host.ts'
import { systemClock } from '../base/clock.ts'
import type { Layout } from '../base/layout.ts'
import type { Owners } from '../base/owners.ts'
import type { Retries } from '../base/retry.ts'
import type { LiveTexts } from '../chat/live-text.ts'
import type { Progress } from '../chat/progress.ts'
import { type Config, zoneOf } from '../config.ts'
import { missingDriver } from '../runs/driver-packages.ts'
import { combineHooks, type Room, type RunHooks } from '../runs/hooks.ts'
import { createInputBox } from '../runs/input-box.ts'
import { createLaunch, imageFor, userOf } from '../runs/launch.ts'
import { createModelHealth } from '../runs/model-gateway/health.ts'
import { refusalNotices, shownRefusals } from '../runs/notices.ts'
import { createRunQueue, type RunQueueOptions } from '../runs/run-queue.ts'
import { rightsOf } from '../runs/scheduler/rights.ts'
import { createScheduler } from '../runs/scheduler/scheduler.ts'
import type { TaskKind } from '../runs/scheduler/types.ts'
import { createUsageMeter } from '../runs/usage-limits.ts'
import { createGlobalFolder } from '../sandboxes/mounts.ts'
import type { Sandbox } from '../sandboxes/types.ts'
import { wipedAt } from '../store/contexts.ts'
import { personZoneOf } from '../store/person-zones.ts'
import type { Positions } from '../store/positions.ts'
import { textMessage } from '../store/text-message.ts'
import type { IncomingRow, Store } from '../store/types.ts'
import { openSandboxChoice } from './sandbox-choice.ts'

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
  progress: Progress
  liveTexts: LiveTexts
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
  taskKinds: readonly TaskKind[]
  hooks: readonly RunHooks[]
  retries: Retries
  /** resolves once the group's files belong to its user */
  settle(folder: string): Promise<void>
  log: Logger
}

export async function openRuns(options: OpenRunsOptions): Promise<OpenRuns> {
  const { config, layout, store, positions, owners, retries, log } = options
  const hooks = combineHooks(options.hooks)
  const installation = installationOf(store)
  createGlobalFolder(layout)
  const sandboxes = await openSandboxChoice({ config, store, installation, log })
  endEarlierRuns(store, options.gone)

  const personZone = (row: IncomingRow) => personZoneOf(store, row)
  const { taskKinds } = options
  for (const kind of taskKinds) await kind.recover?.(installation)
  const kindOf = (task: Task) => taskKinds.find(kind => kind.takes(task))

  const message: RunQueueOptions['message'] = (group, text, author) => ({
    ...textMessage(positions.next(), group, text, Date.now()),
    author,
  })
  const health = createModelHealth({
    config,
    environment: process.env,
    missingDriver: () => missingDriver(config, layout),
    notify: (group, text) =>
      retries.inBackground('saying what is wrong with the model', () => {
        store.transaction(transaction => transaction.insertMessage(message(group, text, 'host')))
        options.said()
      }),
    changed: options.modelChanged,
    log,
    now: Date.now,
  })
  const meter = createUsageMeter({
    config,
    store: { usage: store.agents.usage, meta: store.meta, setMeta: store.setMeta },
    now: () => new Date(),
  })
  const launch = createLaunch({
    config,
    layout,
    installation,
    owners,
    store: store.agents,
    health,
    meter,
    environment: process.env,
    log,
    now: () => new Date(),
    completeTodos(folder, ids) {
      const wanted = new Set(ids)
      store.transaction(transaction => {
        for (const todo of transaction.todos(folder))
          if (!todo.done && wanted.has(todo.id))
            transaction.updateTodo(folder, { ...todo, done: true }, Date.now())
      })
      options.todosChanged(folder)
    },
    hooks: options.hooks,
  })
  const roomIn = (group: Pick<Group, 'folder'>, sandbox: Sandbox): Room => ({
    sandbox,
    installation,
    image: imageFor(config, group, sandbox),
    user: userOf(owners(group.folder)),
    limits: config.agents,
  })
  const agents = createRunQueue({
    config,
    store: store.agents,
    group: store.group,
    launch: async (start, group) => {
      options.begins(group.folder, { taskId: start.task?.id ?? null })
      const sandbox = await sandboxes.forGroup(group, start.driver.name)
      const image = imageFor(config, group, sandbox) ?? null
      store.agents.updateRun(start.run_id, { sandbox: sandbox.name, image })
      await options.settle(group.folder)
      await hooks.prepare(group, roomIn(group, sandbox))
      return launch(start, group, sandbox)
    },
    instructions: hooks.instructions,
    inputBox: group =>
      createInputBox({
        directory: join(layout.ipc, group.folder),
        dialect: group.dialect,
        staging: layout.staging,
        owner: owners(group.folder),
        timezone: zoneOf(config, group.folder),
        personZone,
        now: () => new Date(),
      }),
    personZone,
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
    progress: options.progress,
    liveTexts: options.liveTexts,
    log,
    now: Date.now,
  })
  hooks.opened(async folder => {
    const group = store.group(folder)
    if (!group) throw new Error(`No group has the folder ${folder}.`)
    await options.settle(folder)
    return roomIn(group, await sandboxes.forGroup(group))
  })
  const mayRun = rightsOf(store)
  const scheduler = createScheduler({
    store,
    config,
    log,
    clock: systemClock,
    retries,
    run: (occurrence, task, begin) => (kindOf(task)?.run ?? agents.runTask)(occurrence, task, begin),
    mayRun: task => mayRun(task) ?? kindOf(task)?.mayRun(task),
    changed: options.tasksChanged,
  })

  return {
    queue: agents,
    scheduler,
    choice: sandboxes.usual,
    modelWarning: health.warning,
    modelChanged: health.modelChanged,
    meter,
    async stop() {
      const noted = scheduler.stop()
      await Promise.all([agents.stop(), ...taskKinds.map(kind => kind.stop?.())])
      await noted
      await sandboxes.stop()
    },
  }
}

/** Of what an earlier process was at when it ended: what it had not answered is given again. */
function endEarlierRuns(store: Store, gone: OpenRunsOptions['gone']): void {
  for (const run of store.agents.runs({ status: 'running' })) {
    const wasIdle =
      run.kind === 'chat' && store.agents.incoming({ runId: run.id, status: 'given' }).length === 0
    store.agents.giveBack(run.id)
    gone(run.group, run.id)
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
}

/** Marks what we start, so that we never end what another installation on this machine has started. */
function installationOf(store: Store): string {
  const known = store.meta('installation')
  if (known !== undefined) return known
  const made = randomUUID()
  store.setMeta('installation', made)
  return made
}
