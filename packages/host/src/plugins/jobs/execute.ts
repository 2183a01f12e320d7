import { spawn } from 'node:child_process'
import type { HostJob } from '@hatchway/protocol'
import type { Logger } from 'pino'
import { within } from '../../base/pause.ts'
import { markVariable } from '../../base/processes.ts'
import { type Account, ownAccount } from './accounts.ts'
import type { JobRunRow } from './entity.ts'
import { createOutput } from './output.ts'
import type { OutputPipe } from './pipe.ts'
import { type JobProcesses, jobMark, processesOf } from './processes.ts'

/** How one run ended. */
export interface Ending extends Pick<JobRunRow, 'exitCode' | 'signal' | 'timedOut' | 'output' | 'dropped'> {
  isGood: boolean
  /** in one line, without anything it printed: agents read it, and what a job prints may be anybody's words */
  how: string
  tookMs: number
}

/** A command that runs. */
export interface RunningJob {
  /** ends everything of it; `why` is what is noted, unless something else ended it before */
  end(why: string): void
  /** resolves when the command itself has ended */
  over: Promise<unknown>
  /** resolves when what it has left running is ended, too */
  ending: Promise<Ending>
}

export interface ExecuteOptions {
  job: HostJob
  runId: string
  installation: string
  account: Account
  environment: Readonly<Record<string, string>>
  pipe: OutputPipe
  outputBytes: number
  log: Logger
  now(): number
}

interface Exit {
  code: number | null
  signal: string | null
  /** it could not even be started */
  problem?: string
}

/** how long a job may take to end by itself after SIGTERM */
export const graceMs = 2000
/** what a job has sent on its way just before its end, such as the last lines of a log, may still arrive */
const lingerMs = 500
const drainMs = 1000

const none: JobProcesses = { areOver: async () => true, end: async () => true }

/** Starts a job's command, with a time-out. */
export function execute(options: ExecuteOptions): RunningJob {
  const { job, runId, installation, pipe, log, now } = options
  const startedAt = now()
  const child = spawn('/bin/sh', ['-c', '--', job.command], {
    cwd: job.cwd ?? '/',
    env: { ...options.environment, [markVariable]: jobMark(installation, runId) },
    stdio: ['ignore', pipe.writing, pipe.writing],
    detached: true,
    ...(ownAccount().uid === 0 ? { uid: options.account.uid, gid: options.account.gid } : {}),
  })
  const exited = new Promise<Exit>(resolve => {
    child.once('error', error => resolve({ code: null, signal: null, problem: error.message }))
    child.once('exit', (code, signal) => resolve({ code, signal }))
  })
  const output = createOutput(options.outputBytes)
  pipe.reading.on('data', (chunk: Buffer) => output.add(chunk))
  // What could be read is kept; how it ended does not depend on it.
  pipe.reading.on('error', error => log.warn({ err: error }, 'the output of a job could not be read'))
  const drained = new Promise<void>(resolve => pipe.reading.once('close', resolve))
  pipe.closeWriting()

  const { pid } = child
  const processes = pid === undefined ? none : processesOf(installation, runId, pid)
  let reason: { text: string; isTimeOut: boolean } | undefined
  let ended: Promise<boolean> | undefined
  const givenUp = Promise.withResolvers<Exit>()
  const end = (text: string, isTimeOut = false) => {
    reason ??= { text, isTimeOut }
    ended ??= processes.end(graceMs).then(isGone => {
      // One that hangs in the kernel, or has become another user, is not waited for for ever.
      if (!isGone) givenUp.resolve({ code: null, signal: null })
      return isGone
    })
  }
  const timer = setTimeout(
    () => end(`It was ended after its time-out of ${job.timeout_seconds} s.`, true),
    job.timeout_seconds * 1000,
  )
  const over = Promise.race([exited, givenUp.promise])

  const finish = async (): Promise<Ending> => {
    const { code, signal, problem } = await over
    clearTimeout(timer)
    const why = reason
    const tookMs = now() - startedAt
    const isGone = ended ? await ended : (await processes.areOver(lingerMs)) || (await processes.end(graceMs))
    await within(drainMs, drained)
    const how =
      problem !== undefined
        ? `It could not be started: ${problem}`
        : `${signal === null ? `exit code ${code}` : `ended by ${signal}`} after ${(tookMs / 1000).toFixed(1)} s`
    const left = isGone ? '' : ' Something of it may still be running.'
    const { text, dropped } = output.read()
    return {
      isGood: why === undefined && code === 0 && isGone,
      how: `${why?.text ?? how}${left}`,
      exitCode: code,
      signal,
      timedOut: why?.isTimeOut === true,
      output: text,
      dropped,
      tookMs,
    }
  }
  return { end: why => end(why), over, ending: finish() }
}

/** The ending of one that never began. */
export const neverBegun = (how: string): Ending => ({
  isGood: false,
  how,
  exitCode: null,
  signal: null,
  timedOut: false,
  output: '',
  dropped: 0,
  tookMs: 0,
})
