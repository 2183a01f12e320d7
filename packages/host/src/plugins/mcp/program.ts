import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import { until, within } from '../../base/pause.ts'
import { platform } from '../../base/platform.ts'
import { markedProcesses, markOf, markVariable, signal } from '../../base/processes.ts'
import { NotOpened } from './failure.ts'

/**
 * A server that the host runs, with whatever it starts in turn: `npx` is a shell that runs a program that runs another.
 * It has a process group of its own, and a mark in its environment for what leaves the group; both are ended with it.
 *
 * A daemon that is killed cannot end anything. Most servers end by themselves when their standard input does; for the
 * others a small shell waits beside each server, on a pipe that only the daemon holds. When the pipe closes, the shell
 * gives the group three seconds and then kills it.
 */
export interface Program {
  stdin: Writable
  stdout: Readable
  pid: number
  /** how it ended, once it has; continues "it …" */
  ended: Promise<string>
  hasEnded(): boolean
  /** the end of what it wrote on standard error */
  lastWords(): string
  /** ends it and all it started; `politely`: its input ends first, then comes SIGTERM, then SIGKILL */
  end(how: 'politely' | 'at once'): Promise<void>
}

export interface ProgramOptions {
  command: string
  args: readonly string[]
  env: Record<string, string>
  cwd?: string | undefined
  graceMs: number
}

const killMs = 5000

export async function startProgram(options: ProgramOptions): Promise<Program> {
  const { command, args, cwd, graceMs } = options
  const runId = randomUUID()
  const child = spawn(command, args, {
    cwd,
    env: { ...options.env, [markVariable]: markOf('mcp', 'lent', runId) },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  })
  const failure = new Promise<Error>(resolve => {
    child.on('error', resolve)
  })
  const { pid } = child
  if (pid === undefined)
    throw new NotOpened('could not be started', whyNotStarted(command, cwd, await failure))
  const guard = startGuard(pid)

  let over = false
  const ended = new Promise<string>(resolve => {
    child.once('exit', (code, name) => {
      over = true
      resolve(name === null ? `ended with code ${code}` : `was ended by ${name}`)
    })
  })
  const words = lastWordsOf(child.stderr)
  // Whoever writes to a program that is over learns it from `ended`.
  child.stdin.on('error', () => {})

  const members = () => [
    ...new Set([
      ...platform
        .processes()
        .filter(entry => entry.group === pid)
        .map(entry => entry.pid),
      ...markedProcesses('mcp', 'lent', runId).map(entry => entry.pid),
    ]),
  ]
  const sendSignal = (name: NodeJS.Signals) => {
    signal(-pid, name)
    for (const member of members()) signal(member, name)
  }
  const isGone = () => over && members().length === 0

  return {
    stdin: child.stdin,
    stdout: child.stdout,
    pid,
    ended,
    hasEnded: () => over,
    lastWords: words,
    async end(how) {
      if (how === 'politely') {
        child.stdin.end()
        await within(graceMs, ended)
        if (!isGone()) {
          sendSignal('SIGTERM')
          await until(graceMs, isGone)
        }
      }
      // What forks while it is being ended is met again in the next round.
      await until(killMs, () => {
        if (!isGone()) sendSignal('SIGKILL')
        return isGone()
      })
      guard?.kill('SIGKILL')
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
    },
  }
}

const guardScript =
  'read -r _; for name in 0 0 TERM KILL; do sleep 1; kill "-$name" "-$1" 2>/dev/null || exit; done'

function startGuard(pid: number): ChildProcess | undefined {
  const guard = spawn('/bin/sh', ['-c', guardScript, 'hatchway-guard', String(pid)], {
    cwd: '/',
    env: { PATH: '/usr/bin:/bin' },
    stdio: ['pipe', 'ignore', 'ignore'],
    // Not in the daemon's group: what ends that group must not end its guard.
    detached: true,
  })
  // Without a guard only a killed daemon leaves something behind, and most servers end even then.
  guard.on('error', () => {})
  guard.stdin?.on('error', () => {})
  guard.unref()
  return guard
}

function whyNotStarted(command: string, cwd: string | undefined, error: Error): string {
  const code = 'code' in error ? String(error.code) : error.message
  if (cwd !== undefined && !existsSync(cwd)) return `There is no directory ${cwd}.`
  if (code === 'ENOENT') return `There is no program ${command}.`
  if (code === 'EACCES') return `The program ${command} may not be run.`
  return `The system says ${code}.`
}

const keptLength = 4096
const keptLines = 8

/** Its last lines, without what would colour a terminal. */
function lastWordsOf(stderr: Readable): () => string {
  let kept = ''
  stderr.setEncoding('utf8')
  stderr.on('data', (chunk: string) => {
    kept = (kept + chunk).slice(-keptLength)
  })
  stderr.on('error', () => {})
  return () =>
    stripVTControlCharacters(kept)
      .replaceAll(/[^\P{Cc}\n]/gu, '')
      .trim()
      .split('\n')
      .slice(-keptLines)
      .join('\n')
      .toWellFormed()
}
