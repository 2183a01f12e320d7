import { spawn } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { open } from 'node:fs/promises'
import { finished } from 'node:stream/promises'
import { abortable, until, within } from '../../base/pause.ts'
import { markedProcesses, markOf, markVariable, signal as send } from '../../base/processes.ts'
import { findProgram } from '../../base/programs.ts'

/** Git on the host. It only ever runs in repositories that no agent can write to. */
export interface GitCall {
  /** the repository, or a checkout of it */
  at: string
  /** the repository, where it outlives this process: git that an earlier process left in it ends first */
  lasting?: string
  args: readonly string[]
  environment: Readonly<Record<string, string>>
  /** whom it runs as; undefined: ourselves */
  user?: { uid: number; gid: number } | undefined
  /** a file of ours that it reads on standard input */
  input?: string
  timeoutMs: number
  signal: AbortSignal
  /** of standard output; more ends it */
  most?: number
  /** is given standard output as it comes, instead of having it kept; false ends it */
  hear?(part: Buffer): boolean
  /** kilobytes of address space: for what an agent made */
  memoryKb?: number
}

export interface GitAnswer {
  /** null: it was ended */
  code: number | null
  stdout: string
  /** the end of what it complained about */
  stderr: string
  /** why it was ended, in words */
  ended?: string
}

const keptOutput = 8_388_608
const keptComplaints = 4096
const graceMs = 2000

/** Whatever a repository's settings say: no program of theirs runs, and no transport that is one. */
const always = [
  ...['-c', 'core.hooksPath=/dev/null'],
  ...['-c', 'core.fsmonitor=false'],
  ...['-c', 'protocol.ext.allow=never'],
]

/** Never throws for what git itself says: that is in the answer. */
export async function callGit(call: GitCall): Promise<GitAnswer> {
  call.signal.throwIfAborted()
  if (call.lasting !== undefined) await abortable(isFree(call.lasting), call.signal)
  const program = findProgram('git')
  if (program === undefined) return { code: null, stdout: '', stderr: '', ended: 'git is not on this host' }
  const git = [program, ...always, '-C', call.at, ...call.args]
  const [command = program, ...args] =
    call.memoryKb === undefined
      ? git
      : ['/bin/sh', '-c', `ulimit -v ${call.memoryKb}; exec "$@"`, 'sh', ...git]
  const input = call.input === undefined ? undefined : await open(call.input, 'r')
  try {
    return await run(command, args, call, input?.fd)
  } finally {
    await input?.close()
  }
}

const thisProcess = randomUUID()
const markKind = 'git'
const markName = (repository: string) => createHash('sha256').update(repository).digest('hex').slice(0, 32)
const left = new Map<string, Promise<void>>()
/** git at its slowest is given less */
const leftMs = 300_000

/**
 * Git goes on when its host is killed, and holds locks meanwhile: a sync that began beside it would find the repository
 * locked or half changed. Once for each repository, before its first call in this process.
 */
function isFree(repository: string): Promise<void> {
  const known = left.get(repository)
  if (known) return known
  const strangers = () =>
    markedProcesses(markKind, markName(repository)).filter(({ runId }) => runId !== thisProcess)
  const wait = async () => {
    if (await until(leftMs, () => strangers().length === 0)) return
    // Asked to end, git takes its locks away.
    for (const { pid } of strangers()) send(pid, 'SIGTERM')
    await until(graceMs, () => strangers().length === 0)
  }
  const waiting = wait()
  left.set(repository, waiting)
  return waiting
}

async function run(
  command: string,
  args: readonly string[],
  call: GitCall,
  input: number | undefined,
): Promise<GitAnswer> {
  const most = call.most ?? keptOutput
  // A session of its own: no terminal to ask anybody at, and everything it starts ends with it.
  const child = spawn(command, args, {
    cwd: '/',
    env: {
      ...call.environment,
      GIT_TERMINAL_PROMPT: '0',
      GIT_OPTIONAL_LOCKS: '0',
      ...(call.lasting === undefined
        ? {}
        : { [markVariable]: markOf(markKind, markName(call.lasting), thisProcess) }),
    },
    stdio: [input ?? 'ignore', 'pipe', 'pipe'],
    detached: true,
    ...(call.user ?? {}),
  })
  const { stdout, stderr } = child
  if (!stdout || !stderr) throw new Error('git has no output')
  let ended: string | undefined
  const sendAll = (name: NodeJS.Signals) => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    send(-child.pid, name)
  }
  let last: NodeJS.Timeout | undefined
  // Asked to end, git takes its locks away.
  const end = (why: string) => {
    ended ??= why
    sendAll('SIGTERM')
    last ??= setTimeout(() => sendAll('SIGKILL'), graceMs)
  }
  const parts: Buffer[] = []
  let size = 0
  let complaints = ''
  stdout.on('data', (part: Buffer) => {
    if (call.hear) {
      if (!call.hear(part)) end('it said enough')
      return
    }
    size += part.length
    if (size > most) end(`it said more than ${most} bytes`)
    else parts.push(part)
  })
  stderr.on('data', (part: Buffer) => {
    complaints = (complaints + part.toString('utf8')).slice(-keptComplaints)
  })
  const timer = setTimeout(() => end(`it took more than ${call.timeoutMs / 1000} s`), call.timeoutMs)
  const stop = () => end('it was told to stop')
  call.signal.addEventListener('abort', stop)
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', resolve)
    })
    // Whatever it left running in its group may hold the pipes.
    await within(1000, Promise.all([finished(stdout), finished(stderr)]))
    return {
      code: ended === undefined ? code : null,
      stdout: Buffer.concat(parts).toString('utf8'),
      stderr: complaints,
      ...(ended === undefined ? {} : { ended }),
    }
  } finally {
    clearTimeout(timer)
    clearTimeout(last)
    call.signal.removeEventListener('abort', stop)
    stdout.destroy()
    stderr.destroy()
  }
}

/** For repositories of our own: nobody's settings count. */
export const ownEnvironment = (system?: string): Record<string, string> => ({
  PATH: process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin',
  LANG: 'C.UTF-8',
  HOME: '/nonexistent',
  GIT_CONFIG_GLOBAL: '/dev/null',
  ...(system === undefined ? { GIT_CONFIG_NOSYSTEM: '1' } : { GIT_CONFIG_SYSTEM: system }),
})
