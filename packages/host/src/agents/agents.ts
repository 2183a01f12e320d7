import { randomUUID } from 'node:crypto'
import type { Group, RunInput, RunStart, Task } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import type { Begun, RunEnd } from '../scheduler/scheduler.ts'
import type { AgentStore, IncomingRow, OccurrenceRow } from '../store/agent-types.ts'
import type { NewMessage } from '../store/types.ts'
import { framings } from './framing/index.ts'
import { type InputBox, inputId } from './input-box.ts'
import { type Session, type SessionEnd, type SessionState, startSession } from './session.ts'
import type { SandboxProcess } from './types.ts'

/**
 * Who runs, and when. One session per group, `agents.atOnce` of them at a time, groups in the order in which something
 * came for them. A follow-up goes into the session that runs; a scheduled task waits for its turn, asks an idle session
 * to make room, and is never fed with what people write meanwhile (lesson 28).
 */
export interface Agents {
  /** something may be waiting */
  kick(): void
  /** resolves when the run has ended; `begin` is asked right before anything of it starts */
  runTask(occurrence: OccurrenceRow, task: Task, begin: (runId: string) => Begun): Promise<RunEnd>
  running(): readonly { runId: string; group: string; kind: RunStart['kind']; state: SessionState }[]
  stop(): Promise<void>
}

export interface AgentsOptions {
  config: Config
  store: AgentStore
  group(folder: string): Group | undefined
  sandboxName: string
  launch(start: RunStart, group: Group): Promise<SandboxProcess>
  inputBox(group: Group): InputBox
  message(group: Group, text: string): NewMessage
  /** something to deliver is stored */
  said(): void
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
  session: Session | undefined
  jobs: Job[]
  /** a failed run is tried again after a pause that grows; after these the people are told */
  failures: number
  /** between a run that failed and the next attempt */
  resting: boolean
  lastWasTask: boolean
}

const attempts = 3
const firstPauseMs = 1000
const contextKept = 50

export function createAgents(options: AgentsOptions): Agents {
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
      jobs: [],
      failures: 0,
      resting: false,
      lastWasTask: false,
    }
    places.set(folder, place)
    return place
  }
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

  const look = () => {
    for (const folder of store.groupsWaiting()) {
      const place = placeOf(folder)
      if (!place.session) line.add(folder)
      else feed(place.session)
    }
    const waiting = line
    line = new Set()
    for (const folder of waiting) {
      const place = placeOf(folder)
      if (place.session) makeRoom(place)
      else if (place.resting) line.add(folder)
      else if (sessions().length >= agents.atOnce) line.add(folder)
      else begin(place)
    }
    // Whoever waits need not wait for somebody who does nothing.
    if (line.size > 0 && sessions().length >= agents.atOnce) {
      sessions()
        .find(session => session.state() === 'idle')
        ?.close()
    }
  }

  const makeRoom = ({ session, jobs, folder }: Place) => {
    if (jobs.length === 0) return
    line.add(folder)
    if (session?.state() === 'idle') session.close()
  }

  const feed = (session: Session) => {
    const rows = store.incoming({ group: session.group, status: 'waiting' })
    if (rows.length > 0) session.feed(rows)
  }

  const begin = (place: Place) => {
    const group = options.group(place.folder)
    if (!group) {
      for (const { done } of place.jobs) done(skipped('The group is no longer registered.'))
      places.delete(place.folder)
      return
    }
    const rows = store.incoming({ group: place.folder, status: 'waiting' })
    const job = place.jobs[0]
    // Tasks and messages of one group take turns.
    if (job && (rows.length === 0 || !place.lastWasTask)) {
      place.jobs.shift()
      if (place.jobs.length > 0) line.add(place.folder)
      const runId = randomUUID()
      const begun = job.begin(runId)
      if (begun.ok) return run(place, group, runId, [], { ...job, task: begun.task })
      job.done(skipped(begun.reason))
      line.add(place.folder)
      return kick()
    }
    if (rows.length > 0) run(place, group, randomUUID(), rows, undefined)
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
    const context = job ? [] : store.incoming({ group: group.folder, status: 'context' }).slice(-contextKept)
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
      driver: {
        name: driver,
        ...(command === undefined ? {} : { command: [...command] }),
        ...(settings?.instructions === undefined ? {} : { instructions: settings.instructions }),
      },
      events: config.events,
    }
    place.lastWasTask = job !== undefined
    const session = startSession({
      start,
      group,
      rows,
      keepSession: !isolated,
      framing: framings[group.dialect],
      launch: () => options.launch(start, group),
      input: options.inputBox(group),
      store,
      run: {
        id: runId,
        group: group.folder,
        kind: start.kind,
        taskId: job?.task.id ?? null,
        occurrenceId: job?.occurrence.id ?? null,
        sandbox: options.sandboxName,
        driver,
        sessionId: start.session_id,
        status: 'running',
        startedAt: now(),
        endedAt: null,
        result: null,
        error: null,
      },
      say: text => {
        options.said()
        return options.message(group, text)
      },
      changed: state => {
        options.typing(group.jid, state === 'working')
        if (state !== 'working') kick()
      },
      giveUp:
        job === undefined && place.failures + 1 >= attempts
          ? error => `I could not answer that. ${error}`
          : undefined,
      limits: agents,
      now,
    })
    place.session = session
    log.info({ group: group.folder, run: runId, kind: start.kind }, 'a session begins')
    session.ended
      .then(end => {
        settle(place, group, end, job === undefined)
        job?.done(endOf(end))
      })
      .catch(error => {
        log.error({ err: error, group: group.folder, run: runId }, 'a session could not be ended properly')
        job?.done({ status: 'failed', result: null, error: 'The host failed while the run ended.' })
      })
      .finally(() => {
        place.session = undefined
        if (place.jobs.length > 0) line.add(place.folder)
        kick()
      })
  }

  /** What a chat session that failed left unanswered is tried again, after a pause. */
  const settle = (place: Place, group: Group, end: SessionEnd, isChat: boolean) => {
    log.info({ group: group.folder, error: end.error }, 'a session has ended')
    if (!isChat) return
    if (end.error === undefined || end.answered) {
      place.failures = 0
      return
    }
    place.failures++
    const pause = firstPauseMs * 4 ** (place.failures - 1)
    place.resting = true
    later(pause, () => {
      place.resting = false
    })
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

const skipped = (reason: string): RunEnd => ({ status: 'skipped', result: null, error: reason })

const endOf = ({ error, result, woken }: SessionEnd): RunEnd => ({
  status: error !== undefined ? 'failed' : woken ? 'done' : 'skipped',
  result,
  error: error ?? null,
})

const inputOf = (row: IncomingRow): RunInput => ({
  id: inputId(row.id),
  text: row.text,
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
