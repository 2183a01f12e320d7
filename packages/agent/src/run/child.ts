import { spawn } from 'node:child_process'
import type { Readable } from 'node:stream'

export interface ChildOptions {
  cwd: string
  env: NodeJS.ProcessEnv
  input?: string
  timeoutMs?: number
  abort: AbortSignal
  /** characters kept of each stream */
  keep: number
  /** which end of a longer output counts */
  keepEnd: 'first' | 'last'
}

interface ChildExit {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
  cut: boolean
  timedOut: boolean
  /** it could not be started at all */
  failure?: string
}

export interface Child {
  exited: Promise<ChildExit>
  /** ends it and whatever it started */
  kill(): void
}

/** A program of the user's, in a process group of its own, so that nothing of it outlives its end. */
export function startChild(command: string, args: readonly string[], options: ChildOptions): Child {
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: options.env,
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  })
  let timedOut = false
  const kill = () => {
    if (child.pid === undefined) return
    try {
      process.kill(-child.pid, 'SIGKILL')
    } catch (error) {
      if (!isGone(error)) throw error
    }
  }
  const stdout = collect(child.stdout, options)
  const stderr = collect(child.stderr, { ...options, keepEnd: 'last' })
  const timer =
    options.timeoutMs === undefined
      ? undefined
      : setTimeout(() => {
          timedOut = true
          kill()
        }, options.timeoutMs)
  options.abort.addEventListener('abort', kill)
  // A program that does not read its input closes the pipe; that is its right.
  child.stdin.on('error', () => {})
  child.stdin.end(options.input ?? '')

  const exited = new Promise<ChildExit>(resolve => {
    const end = (code: number | null, signal: NodeJS.Signals | null, failure?: string) => {
      clearTimeout(timer)
      options.abort.removeEventListener('abort', kill)
      resolve({
        code,
        signal,
        stdout: stdout.text(),
        stderr: stderr.text(),
        cut: stdout.cut(),
        timedOut,
        ...(failure === undefined ? {} : { failure }),
      })
    }
    child.on('error', error => end(null, null, error.message))
    // What it left behind in the background would hold its output open for ever.
    child.on('exit', kill)
    child.on('close', (code, signal) => end(code, signal))
  })
  return { exited, kill }
}

const isGone = (error: unknown) => error instanceof Error && 'code' in error && error.code === 'ESRCH'

/** Kept in the pieces it came in: to put a flood together again and again takes more memory than a sandbox has. */
function collect(stream: Readable, { keep, keepEnd }: Pick<ChildOptions, 'keep' | 'keepEnd'>) {
  const pieces: string[] = []
  let length = 0
  let cut = false
  stream.setEncoding('utf8')
  stream.on('data', (piece: string) => {
    if (length + piece.length > keep) cut = true
    if (keepEnd === 'first' && length >= keep) return
    pieces.push(piece)
    length += piece.length
    while (keepEnd === 'last' && length - (pieces[0]?.length ?? 0) >= keep) {
      length -= pieces.shift()?.length ?? 0
    }
  })
  const text = () => {
    const all = pieces.join('')
    return keepEnd === 'first' ? all.slice(0, keep) : all.slice(-keep)
  }
  return { text, cut: () => cut }
}
