import type { Group } from '@hatchway/protocol'
import { containerProtocols } from '../container-protocols/index.ts'
import { startSession } from '../session.ts'
import { isIsolated, type NewRun, runRow, runStart } from './run-start.ts'
import type { QueuedSession, RunQueueOptions } from './types.ts'

/** runs that may fail in a row before people are told */
const attempts = 3
/** characters of an error in the chat; all of it is in the run's transcript */
const errorTold = 1000

/** Starts the session of a run. Throws, with nothing done, if the store fails. */
export function openSession(
  options: RunQueueOptions,
  run: NewRun,
  /** how many runs have failed before this one */
  failures: number,
  kick: () => void,
): QueuedSession {
  const { store, log, now } = options
  const { group, job } = run
  const { folder } = group
  // A run with a context of its own is told nothing that came of another.
  const refusals = () => (isIsolated(run) ? [] : (options.refusals?.(folder) ?? []))
  const start = runStart(options, run, refusals())
  const isRegistered = () => isSame(options.group(folder), group)
  const session = startSession({
    start,
    group,
    rows: run.rows,
    keepSession: !isIsolated(run),
    protocol: containerProtocols[group.dialect],
    launch: () => options.launch(start, group),
    input: options.inputBox(group),
    store,
    run: runRow(run, start, now()),
    say(text, author) {
      if (!isRegistered()) return undefined
      const message = options.message(group, text, author)
      return job === undefined ? (options.progress?.replacing(message) ?? message) : message
    },
    said: options.said,
    changed(state) {
      if (state !== 'working') kick()
      options.typing(group.jid, state === 'working')
      if (job !== undefined) return
      if (state === 'stopping' || state === 'ended') options.liveTexts?.over(folder)
      if (state === 'working') options.progress?.working(group)
      else options.progress?.over(folder, state === 'idle')
    },
    uses(tool) {
      if (job !== undefined) return
      options.liveTexts?.uses(group, tool)
      options.progress?.working(group, tool)
    },
    writes: words => (job === undefined ? options.liveTexts?.grow(group, words) : undefined),
    turnOver: () => (job === undefined ? options.liveTexts?.over(folder) : undefined),
    cutOff: by => options.cutOff?.(group, run.id, by),
    waitsForPeople: () => options.waitsForPeople?.(folder) === true,
    turnStopped: () => options.turnStopped?.(folder),
    notices: refusals,
    hasRoom: kick,
    decided: async () => options.decided?.(folder),
    giveUp(error) {
      if (job !== undefined) return undefined
      const problem = options.modelProblem?.(run.id)
      if (problem === undefined && failures + 1 < attempts) return undefined
      return `I could not answer that. ${(problem ?? error).slice(0, errorTold)}`
    },
    limits: options.config.agents,
    log,
    now,
  })
  log.info({ group: folder, run: run.id, kind: start.kind }, 'a session begins')
  return { ...session, isRegistered, occurrenceId: job?.occurrence.id ?? null }
}

/** A folder that was given up and registered again belongs to another group. */
const isSame = (current: Group | undefined, group: Group): boolean =>
  current !== undefined && current.jid === group.jid && current.added_at === group.added_at
