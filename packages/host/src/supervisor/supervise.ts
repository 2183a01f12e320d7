import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { tryLockFile } from '../base/lock-file.ts'
import { checkoutIn } from './checkout.ts'
import { type Child, endDaemons, startChild } from './child.ts'
import { endCommands, runCommand } from './command.ts'
import { type Handover, installationOf, readHandover, writeHandover } from './handover.ts'

/**
 * Keeps a daemon running, and goes back to the revision before if a new one does not come up. It is small, made of what
 * Node itself brings, and loaded whole when it starts: the code on the disk changes under it.
 */
export interface SuperviseOptions {
  /** see `handoverFile` */
  handover: string
  /** runs the daemon */
  command: readonly string[]
  /** whether the program is the operator's own, which may not pass signals on to the daemon it runs */
  isForeign: boolean
  environment: NodeJS.ProcessEnv
  /** aborted, with the signal's name as its reason, to end the daemon and then this */
  end: AbortSignal
  say(level: 'info' | 'error', message: string, about?: Record<string, unknown>): void
  times?: Partial<Times>
}

interface Times {
  /** before a daemon that ended is started again; doubled each time */
  firstPauseMs: number
  longestPauseMs: number
  /** one that ran this long gets the first pause again */
  steadyMs: number
  /** for a daemon that was asked to end */
  stopMs: number
  /** for one that an earlier supervisor has left, and that should end by itself */
  leftMs: number
  /** between two looks for the word of the new one */
  pollMs: number
}

const usualTimes: Times = {
  firstPauseMs: 1000,
  longestPauseMs: 60_000,
  steadyMs: 60_000,
  stopMs: 60_000,
  leftMs: 10_000,
  pollMs: 100,
}

class DataGone extends Error {
  override name = 'DataGone'
}

class AlreadySupervised extends Error {
  override name = 'AlreadySupervised'
}

export async function supervise(options: SuperviseOptions): Promise<void> {
  const { handover: path, end, say } = options
  const state = dirname(path)
  mkdirSync(state, { recursive: true, mode: 0o700 })
  const lock = tryLockFile(join(state, 'supervisor.lock'))
  if (!lock) throw new AlreadySupervised(`Another supervisor looks after ${dirname(state)} already.`)
  try {
    const installation = installationOf(path)
    const times = { ...usualTimes, ...options.times }
    const left = await endDaemons(installation, times.leftMs)
    if (left > 0) say('info', 'a daemon of an earlier supervisor has ended')
    await endCommands(installation)
    await keepRunning({ ...options, installation, times })
  } finally {
    lock.release()
  }
  say('info', `ended by ${end.reason}`)
}

type Supervision = SuperviseOptions & { installation: string; times: Times }

async function keepRunning(options: Supervision): Promise<void> {
  const { handover: path, end, say, times } = options
  const asked = aborted(end)
  let pauseMs = times.firstPauseMs
  while (!end.aborted) {
    // Whoever removed it will not bring it back for us, and a daemon would begin an empty one in its place.
    if (!existsSync(dirname(path)))
      throw new DataGone(`The data directory ${dirname(dirname(path))} is gone.`)
    const unfinished = readHandover(path)
    if (unfinished?.status === 'rolling_back') await goBack(unfinished, options)
    if (end.aborted) return
    await noteUnproven(options)
    const before = readHandover(path)
    const watched = before?.status === 'restarting' || before?.status === 'building' ? before : undefined
    const child = startChild({
      command: options.command,
      isForeign: options.isForeign,
      installation: options.installation,
      environment: {
        ...options.environment,
        HATCHWAY_HANDOVER: path,
        HATCHWAY_SUPERVISOR: String(process.pid),
      },
      stopMs: times.stopMs,
    })
    const startedAt = performance.now()
    say('info', 'the daemon is started', { pid: child.pid, ...(watched ? { revision: watched.to } : {}) })
    const problem = watched && (await watch(watched, child, options))
    if (watched && problem !== undefined) {
      if (end.aborted) return child.stop(signalOf(end))
      await child.kill()
      // It may have said so in its last moment; then it is no longer ours to judge.
      if (isUp(watched, path)) continue
      giveUp(watched, problem, child.lastWords(), options)
      continue
    }
    const how = await Promise.race([child.exited, asked])
    if (how === undefined) return child.stop(signalOf(end))
    if (readHandover(path)?.status === 'restarting') {
      say('info', `the daemon has handed over: ${how}`)
      continue
    }
    if (performance.now() - startedAt >= times.steadyMs) pauseMs = times.firstPauseMs
    say('error', `the daemon is gone: ${how}. It is started again in ${pauseMs / 1000} s`)
    if (before?.status === 'rolled_back') say('error', hintAfterRollback)
    await pause(pauseMs, end)
    pauseMs = Math.min(pauseMs * 2, times.longestPauseMs)
  }
}

/** A merge or a person may have checked out another revision since the last one came up. */
async function noteUnproven({ handover: path, environment, say }: Supervision): Promise<void> {
  const last = readHandover(path)
  if (last?.status !== 'up' || last.from !== last.to) return
  try {
    const to = await checkoutIn(last.directory, environment).head()
    if (to !== last.to) writeHandover(path, { ...last, to, status: 'building' })
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    say('error', `it is not known which revision is started: ${problem}`, { directory: last.directory })
  }
}

/** Undefined: it has said that it is up. Otherwise why it is given up: it has ended, or its time is over. */
async function watch(
  watched: Handover,
  child: Child,
  { handover: path, end, times }: Supervision,
): Promise<string | undefined> {
  const deadline = performance.now() + watched.healthMs
  for (;;) {
    const hasExited = child.hasExited()
    if (isUp(watched, path)) return undefined
    if (hasExited) return child.exited
    if (end.aborted || performance.now() >= deadline) {
      return `it did not say within ${Math.round(watched.healthMs / 1000)} s that it is up`
    }
    await Promise.race([child.exited, pause(times.pollMs, end)])
  }
}

/** One that has handed over to the next already was up before we looked: nobody else writes another number. */
const isUp = ({ id }: Handover, path: string): boolean => {
  const now = readHandover(path)
  return now !== undefined && (now.id !== id || now.status === 'up')
}

function giveUp(watched: Handover, why: string, words: string, { handover: path, say }: Supervision): void {
  const reason = words === '' ? `${why}.` : `${why}. Its last words:\n${words}`
  const canGoBack = watched.from !== watched.to
  writeHandover(path, { ...watched, status: canGoBack ? 'rolling_back' : 'failed', reason })
  say('error', `revision ${watched.to} did not come up: ${why}`, {
    next: canGoBack
      ? `back to ${watched.from}`
      : 'it is the only revision there is, and is started again and again',
  })
}

/** Once: whether or not the revision before comes up, it stays. */
async function goBack(handover: Handover, options: Supervision): Promise<void> {
  const { handover: path, end, say, environment, installation } = options
  const { id, from, directory, build, commandMs } = handover
  const notes = [handover.reason ?? '']
  try {
    await checkoutIn(directory, environment).goTo(from)
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    say('error', `the checkout cannot be brought back to ${from}: ${problem}`, { directory })
    notes.push(`The checkout could not be brought back to ${from}: ${problem}`)
    return writeHandover(path, { ...handover, status: 'failed', reason: notes.join('\n') })
  }
  say('info', `the checkout is at ${from} again`, { directory })
  for (const command of build) {
    const problem = await runCommand(command, {
      directory,
      ms: commandMs,
      installation,
      deploy: id,
      environment,
      abort: end,
    })
    // Whoever starts us again goes on with it.
    if (end.aborted) return
    if (problem === undefined) continue
    // What was built before may still be good enough, and without a start there is nothing at all.
    say('error', `the revision before could not be built: ${problem}`)
    notes.push(`The revision before could not be built again: ${problem}`)
    break
  }
  writeHandover(path, { ...handover, status: 'rolled_back', reason: notes.join('\n') })
}

const hintAfterRollback =
  'the revision that was gone back to does not come up either; it is tried again and again. If it says that the data ' +
  'directory was written by a newer Hatchway, the other revision has changed the database: check that revision out and ' +
  'repair it, or restore a backup'

const signalOf = (end: AbortSignal): NodeJS.Signals => (end.reason === 'SIGINT' ? 'SIGINT' : 'SIGTERM')

const aborted = (signal: AbortSignal) =>
  new Promise<undefined>(resolve => {
    if (signal.aborted) resolve(undefined)
    else signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })

const pause = (ms: number, signal: AbortSignal) =>
  sleep(ms, undefined, { signal }).catch(error => {
    if (!signal.aborted) throw error
  })
