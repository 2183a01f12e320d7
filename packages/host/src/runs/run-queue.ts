import { randomUUID } from 'node:crypto'
import type { Group, RunInput, RunStart, Task } from '@hatchway/protocol'
import type { Logger } from 'pino'
import { isStorageFailure } from '../base/storage-failure.ts'
import type { CurrentRun } from '../commands/types.ts'
import type { Config } from '../config.ts'
import type { SandboxProcess } from '../sandboxes/types.ts'
import type { AgentStore, IncomingRow, OccurrenceRow } from '../store/agent-types.ts'
import { textWithFiles } from '../store/attachment-text.ts'
import type { MessageRow, NewMessage } from '../store/types.ts'
import { containerProtocols } from './container-protocols/index.ts'
import { type InputBox, inputId } from './input-box.ts'
import { interruptedRuns, interruptionNotice, sentIn } from './notices.ts'
import type { Begun, RunEnd } from './scheduler/scheduler.ts'
import { inputsAtOnce, type Session, type SessionEnd, type SessionState, startSession } from './session.ts'

/**
 * Who runs, and when. One session per group, `agents.atOnce` of them at a time, groups in the order in which something
 * came for them. A follow-up goes into the session that runs; a scheduled task waits for its turn, asks an idle session
 * to make room, and is never fed with what people write meanwhile.
 */
export interface RunQueue {
  /** something may be waiting */
  kick(): void
  /** resolves when the run has ended; `begin` is asked right before anything of it starts */
  runTask(occurrence: OccurrenceRow, task: Task, begin: (runId: string) => Begun): Promise<RunEnd>
  /** what the group's agent is at */
  runOf(folder: string): CurrentRun | undefined
  /** the group's agent is not to go on with its session; what it says now is its last turn there */
  forget(folder: string): void
  /** the run counts as done, however it ends */
  finish(folder: string, runId: string): void
  /** ends the turn that the group's agent is at, if it is this run's; false: there is none. Throws, with nothing done, if the store fails. */
  stopTurn(folder: string, by: string, runId?: string): boolean
  /** the run, after what it is doing now; without a name the one that there is */
  close(folder: string, runId?: string): void
  running(): readonly { runId: string; group: string; kind: RunStart['kind']; state: SessionState }[]
  stop(): Promise<void>
}

export interface RunQueueOptions {
  config: Config
  store: AgentStore
  group(folder: string): Group | undefined
  launch(start: RunStart, group: Group): Promise<SandboxProcess>
  inputBox(group: Group): InputBox
  message(group: Group, text: string): NewMessage
  /** something to deliver is stored */
  said(): void
  /** somebody stopped the agent in the middle of its turn: its next run is to be told */
  cutOff?(group: Group, runId: string, by: string): void
  /** nobody waits for what the group's agent had put to people in the turn that was stopped */
  turnStopped?(folder: string): void
  /** whether something that the group's agent has asked for waits for a person */
  waitsForPeople?(folder: string): boolean
  /** what the group's agent has said lately, oldest first */
  lately?(folder: string): readonly MessageRow[]
  /** when the group's files were last wiped: what its agent had said by then it does not know any more */
  wipedAt?(folder: string): number
  /** what was refused to the group's agent without an answer; asked for, it counts as told */
  refusals?(folder: string): readonly string[]
  /** the container of a run is gone, and with it whoever waited for answers in it */
  gone?(folder: string, runId: string): void
  /** why the run could not ask its model, if so: it need not be tried again to be sure */
  modelProblem?(runId: string): string | undefined
  /** resolves once everything is decided that lies in the group's directories */
  decided?(folder: string): Promise<void>
  /** whether everything that the last run had asked for is decided; if not, `kick` says when it is */
  mayBegin?(folder: string): boolean
  typing(jid: string, on: boolean): void
  log: Logger
  now(): number
}

interface Job {
  occurrence: OccurrenceRow
  task: Task
  begin(runId: string): Begun
  done(end: RunEnd): void
}

interface Place {
  folder: string
  session: (Session & { isRegistered(): boolean; occurrenceId: string | null }) | undefined
  /** what it asked for last may still have to be decided */
  last: CurrentRun | undefined
  jobs: Job[]
  /** a failed run is tried again after a pause that grows; after these the people are told */
  failures: number
  /** between a run that failed and the next attempt */
  resting: boolean
  lastWasTask: boolean
}

const attempts = 3
const firstPauseMs = 1000
/** between two attempts where the disk has no room for a run */
const noRoomPauseMs = 2000
const contextKept = 50
const runsLookedAt = 10
/** of an error, in the chat; all of it is in the run's transcript */
const errorTold = 1000

export function createRunQueue(options: RunQueueOptions): RunQueue {
  const { config, store, log, now } = options
  const { agents } = config
  const places = new Map<string, Place>()
  /** folders whose turn comes next */
  let line = new Set<string>()
  let stopped = false
  let scheduled = false
  const timers = new Set<NodeJS.Timeout>()

  const placeOf = (folder: string): Place => {
    const known = places.get(folder)
    if (known) return known
    const place: Place = {
      folder,
      session: undefined,
      last: undefined,
      jobs: [],
      failures: 0,
      resting: false,
      lastWasTask: false,
    }
    places.set(folder, place)
    return place
  }
  const mayBegin = (folder: string) => options.mayBegin?.(folder) ?? true
  const sessions = () => [...places.values()].flatMap(({ session }) => session ?? [])

  const kick = () => {
    if (scheduled || stopped) return
    scheduled = true
    setImmediate(() => {
      scheduled = false
      if (stopped) return
      try {
        look()
      } catch (error) {
        log.error({ err: error }, 'the sessions could not be looked after; it is tried again in a second')
        later(1000)
      }
    })
  }

  const later = (ms: number, first = () => {}) => {
    if (stopped) return
    const timer = setTimeout(() => {
      timers.delete(timer)
      first()
      kick()
    }, ms)
    timers.add(timer)
  }

  /** What goes wrong with one group is tried again in a moment, and is nobody else's trouble. */
  const attempt = (folder: string, work: (place: Place) => void) => {
    const place = placeOf(folder)
    try {
      work(place)
    } catch (error) {
      log.error({ err: error, group: folder }, 'a group could not be looked after; it is tried again')
      line.add(folder)
      rest(place, firstPauseMs)
    }
  }
  const rest = (place: Place, ms: number) => {
    place.resting = true
    later(ms, () => {
      place.resting = false
    })
  }

  const look = () => {
    for (const session of sessions()) {
      if (!session.isRegistered()) session.kill('its group is no longer registered')
    }
    for (const folder of store.groupsWaiting()) {
      const { session } = placeOf(folder)
      if (session) attempt(folder, place => feed(place, session))
      else line.add(folder)
    }
    const waiting = line
    line = new Set()
    for (const folder of waiting) {
      attempt(folder, place => {
        if (place.session) makeRoom(place, place.session)
        else if (place.resting || !mayBegin(folder) || sessions().length >= agents.atOnce) line.add(folder)
        else begin(place)
      })
    }
    // Whoever waits need not wait for somebody who does nothing.
    if (line.size > 0 && sessions().length >= agents.atOnce) {
      sessions()
        .find(session => session.state() === 'idle')
        ?.close()
    }
  }

  const makeRoom = ({ jobs, folder }: Place, session: Session) => {
    if (jobs.length === 0) return
    line.add(folder)
    if (session.state() === 'idle') session.close()
  }

  const feed = (place: Place, session: Session) => {
    // Between two turns it is the task's turn, however much people write.
    if (place.jobs.length > 0 && session.state() === 'idle') return
    const room = session.room()
    if (room <= 0) return
    const rows = store.incoming({ group: session.group, status: 'waiting', limit: room })
    if (rows.length > 0) session.feed(rows)
  }

  const begin = (place: Place) => {
    const group = options.group(place.folder)
    if (!group) {
      for (const { done } of place.jobs) done(skipped('The group is no longer registered.'))
      places.delete(place.folder)
      return
    }
    const rows = store.incoming({ group: place.folder, status: 'waiting', limit: inputsAtOnce })
    const job = place.jobs[0]
    // Tasks and messages of one group take turns.
    if (job && (rows.length === 0 || !place.lastWasTask)) return beginTask(place, group, job)
    if (rows.length > 0) run(place, group, randomUUID(), rows, undefined)
  }

  const beginTask = (place: Place, group: Group, job: Job) => {
    const runId = randomUUID()
    // If this throws nothing has begun, and the job stays where it is.
    const begun = job.begin(runId)
    place.jobs.shift()
    line.add(place.folder)
    if (!begun.ok) {
      job.done(skipped(begun.reason))
      return kick()
    }
    try {
      run(place, group, runId, [], { ...job, task: begun.task })
    } catch (error) {
      // Nothing of it has begun: where the disk failed it is begun again.
      if (isStorageFailure(error)) place.jobs.unshift(job)
      else job.done(failed('The host could not begin the run.'))
      throw error
    }
  }

  const run = (
    place: Place,
    group: Group,
    runId: string,
    rows: readonly IncomingRow[],
    job: Job | undefined,
  ) => {
    const isolated = job?.task.context_mode === 'isolated'
    const settings = config.groups[group.folder]
    const driver = settings?.driver ?? agents.driver
    const command = settings?.command ?? agents.command
    const last = rows.at(-1)?.id ?? 0
    // What was said after it goes along with the next one.
    const context = job
      ? []
      : store
          .incoming({ group: group.folder, status: 'context' })
          .filter(({ id }) => id < last)
          .slice(-contextKept)
    // One with a context of its own is told nothing that came of another.
    const refusals = () => (isolated ? [] : (options.refusals?.(group.folder) ?? []))
    const notices = [...interruption(group, rows), ...refusals()]
    const start: RunStart = {
      version: 1,
      run_id: runId,
      kind: job ? 'task' : 'chat',
      group: { folder: group.folder, name: group.name, jid: group.jid, main: group.main },
      assistant: agents.assistant,
      timezone: job?.task.timezone ?? config.timezone,
      session_id: isolated ? null : (store.session(group.folder) ?? null),
      model: job?.task.model ?? null,
      task: job ? { id: job.task.id, occurrence_id: job.occurrence.id, script: job.task.script } : null,
      inputs: job ? [promptOf(job, now())] : rows.map(inputOf),
      context: context.map(inputOf),
      ...(notices.length === 0 ? {} : { notices }),
      ...(settings?.repo === undefined ? {} : { repository: settings.repo }),
      driver: {
        name: driver,
        ...(command === undefined ? {} : { command: [...command] }),
        ...(settings?.instructions === undefined ? {} : { instructions: settings.instructions }),
      },
      events: config.events,
    }
    const protocol = containerProtocols[group.dialect]
    const isRegistered = () => isSame(options.group(group.folder), group)
    place.lastWasTask = job !== undefined
    const session = startSession({
      start,
      group,
      rows,
      keepSession: !isolated,
      protocol: protocol,
      launch: () => options.launch(start, group),
      input: options.inputBox(group),
      store,
      run: {
        id: runId,
        group: group.folder,
        kind: start.kind,
        taskId: job?.task.id ?? null,
        occurrenceId: job?.occurrence.id ?? null,
        sandbox: 'none',
        image: null,
        driver: protocol.ownRunner ? driver : 'image',
        sessionId: start.session_id,
        status: 'running',
        startedAt: now(),
        endedAt: null,
        result: null,
        error: null,
      },
      say: text => (isRegistered() ? options.message(group, text) : undefined),
      said: options.said,
      changed: state => {
        try {
          options.typing(group.jid, state === 'working')
        } catch (error) {
          log.error({ err: error, group: group.folder }, 'a channel could not show that somebody is writing')
        }
        if (state !== 'working') kick()
      },
      cutOff: by => options.cutOff?.(group, runId, by),
      waitsForPeople: () => options.waitsForPeople?.(group.folder) === true,
      turnStopped: () => options.turnStopped?.(group.folder),
      notices: refusals,
      hasRoom: kick,
      decided: async () => options.decided?.(group.folder),
      giveUp(error) {
        if (job !== undefined) return undefined
        const problem = options.modelProblem?.(runId)
        if (problem === undefined && place.failures + 1 < attempts) return undefined
        return `I could not answer that. ${(problem ?? error).slice(0, errorTold)}`
      },
      limits: agents,
      log,
      now,
    })
    place.session = { ...session, isRegistered, occurrenceId: job?.occurrence.id ?? null }
    log.info({ group: group.folder, run: runId, kind: start.kind }, 'a session begins')
    session.ended
      .then(end => {
        place.last = place.session && currentRun(place.session)
        place.session = undefined
        settle(place, group, end, job === undefined)
        job?.done(endOf(end))
      })
      .catch(error => {
        log.error({ err: error, group: group.folder, run: runId }, 'a session could not be ended properly')
        job?.done(failed('The host failed while the run ended.'))
      })
      .finally(() => {
        place.session = undefined
        options.gone?.(group.folder, runId)
        if (place.jobs.length > 0) line.add(place.folder)
        kick()
      })
  }

  /** Whoever has sent half of it must not send it twice. */
  const interruption = ({ folder, jid }: Group, rows: readonly IncomingRow[]): readonly string[] => {
    const since = options.wipedAt?.(folder) ?? 0
    const lately = store
      .runs({ group: folder, limit: runsLookedAt })
      .filter(({ startedAt }) => startedAt >= since)
    const runs = interruptedRuns(rows, store.run, lately)
    if (runs.length === 0) return []
    const asked = rows[0]?.createdAt ?? 0
    return [interruptionNotice(sentIn(runs, asked, options.lately?.(folder) ?? []), jid)]
  }

  /** What a chat session that failed left unanswered is tried again, after a pause. */
  const settle = (place: Place, group: Group, end: SessionEnd, isChat: boolean) => {
    log.info({ group: group.folder, error: end.error }, 'a session has ended')
    if (!isChat) return
    if (end.error === undefined || end.answered) {
      place.failures = 0
      return
    }
    if (end.hadNoRoom) return rest(place, noRoomPauseMs)
    place.failures++
    rest(place, firstPauseMs * 4 ** (place.failures - 1))
  }

  return {
    kick,
    runTask: (occurrence, task, begin) =>
      new Promise(done => {
        if (stopped) return done(skipped('The host is stopping.'))
        placeOf(task.group).jobs.push({ occurrence, task, begin, done })
        line.add(task.group)
        const { session } = placeOf(task.group)
        if (session?.state() === 'idle') session.close()
        kick()
      }),
    runOf(folder) {
      const place = places.get(folder)
      if (place?.session) return currentRun(place.session)
      return mayBegin(folder) ? undefined : place?.last
    },
    forget: folder => places.get(folder)?.session?.forget(),
    finish(folder, runId) {
      const session = places.get(folder)?.session
      if (session?.runId === runId) session.finish()
    },
    stopTurn(folder, by, runId) {
      const session = places.get(folder)?.session
      return session !== undefined && (runId === undefined || session.runId === runId) && session.stopTurn(by)
    },
    close(folder, runId) {
      const session = places.get(folder)?.session
      if (runId === undefined || session?.runId === runId) session?.close()
    },
    running: () =>
      sessions().map(session => ({
        runId: session.runId,
        group: session.group,
        kind: session.kind,
        state: session.state(),
      })),
    async stop() {
      stopped = true
      for (const timer of timers) clearTimeout(timer)
      const all = sessions()
      for (const session of all) session.kill('the host is stopping')
      await Promise.all(all.map(session => session.ended))
    },
  }
}

const currentRun = ({
  runId,
  kind,
  occurrenceId,
  isByDeploy,
}: Pick<Session, 'runId' | 'kind' | 'isByDeploy'> & { occurrenceId: string | null }): CurrentRun => ({
  id: runId,
  kind,
  occurrenceId,
  isByDeploy: isByDeploy(),
})

const skipped = (reason: string): RunEnd => ({ status: 'skipped', result: null, error: reason })
const failed = (reason: string): RunEnd => ({ status: 'failed', result: null, error: reason })

/** A folder that was given up and registered anew is another group's. */
const isSame = (now: Group | undefined, then: Group): boolean =>
  now !== undefined && now.jid === then.jid && now.added_at === then.added_at

const endOf = ({ error, result, woken }: SessionEnd): RunEnd => ({
  status: error !== undefined ? 'failed' : woken ? 'done' : 'skipped',
  result,
  error: error ?? null,
})

const inputOf = (row: IncomingRow): RunInput => ({
  id: inputId(row.id),
  text: textWithFiles(row),
  sender: row.sender,
  sender_name: row.senderName,
  timestamp: new Date(row.createdAt).toISOString(),
})

const promptOf = ({ task, occurrence }: Job, now: number): RunInput => ({
  id: occurrence.id,
  text: task.prompt,
  sender: 'schedule',
  sender_name: 'Schedule',
  timestamp: new Date(now).toISOString(),
})
