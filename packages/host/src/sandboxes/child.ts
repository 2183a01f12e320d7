import type { ChildProcess } from 'node:child_process'
import { PassThrough, Readable, Writable } from 'node:stream'
import { within } from '../base/pause.ts'
import type { SandboxExit, SandboxProcess } from './types.ts'

interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  /** it could not even be started */
  failure?: string
}

/** A started program with its three streams, and the tail of what it said on the third. */
export interface Watched {
  stdin: Writable
  stdout: Readable
  stderr: Readable
  ended: Promise<Ended>
  hasEnded(): boolean
  tail(): string
}

const tailLength = 4096
const drainMs = 500

export function watch(child: ChildProcess): Watched {
  const { stdin, stdout, stderr } = child
  if (!stdin || !stdout || !stderr) throw new Error('a sandbox needs its three streams as pipes')
  let tail = ''
  let over = false
  const copy = new PassThrough()
  stderr.on('data', (chunk: Buffer) => {
    tail = (tail + chunk.toString('utf8')).slice(-tailLength)
  })
  stderr.pipe(copy)
  const drained = new Promise<void>(resolve => {
    stderr.once('close', () => resolve())
  })
  // Writing to a run that is over is not a fault of the writer: `exited` tells how it ended.
  stdin.on('error', () => {})
  const ended = new Promise<Ended>(resolve => {
    child.once('error', error => {
      over = true
      resolve({ code: null, signal: null, failure: error.message })
    })
    child.once('exit', async (code, signal) => {
      // Its last words are the reason; but a grandchild that holds the pipe must not hold us.
      await within(drainMs, drained)
      over = true
      resolve({ code, signal })
    })
  })
  return { stdin, stdout, stderr: copy, ended, hasEnded: () => over, tail: () => tail }
}

/** A run that never was: the reason comes the same way as any other end. */
export function stillborn(name: string, problem: string): SandboxProcess {
  return {
    name,
    stdin: new Writable({ write: (_chunk, _encoding, done) => done() }),
    stdout: Readable.from([]),
    stderr: Readable.from([]),
    exited: Promise.resolve({ code: null, signal: null, problem }),
    kill: () => Promise.resolve(),
  }
}

const signals: Readonly<Record<number, NodeJS.Signals>> = {
  129: 'SIGHUP',
  130: 'SIGINT',
  131: 'SIGQUIT',
  132: 'SIGILL',
  133: 'SIGTRAP',
  134: 'SIGABRT',
  135: 'SIGBUS',
  136: 'SIGFPE',
  137: 'SIGKILL',
  139: 'SIGSEGV',
  141: 'SIGPIPE',
  143: 'SIGTERM',
}

/** Engines and bubblewrap report an end by a signal as 128 + its number. */
export function exitOf(code: number | null, signal: NodeJS.Signals | null, problem?: string): SandboxExit {
  const reported = code === null ? undefined : signals[code]
  const exit = reported === undefined ? { code, signal } : { code: null, signal: reported }
  return problem === undefined ? exit : { ...exit, problem }
}
