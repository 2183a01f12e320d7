import { spawn } from 'node:child_process'
import { hatchwayProgram } from '../paths.ts'

/** The daemon as people start it, in a process of its own that can be killed at any moment. */
export interface Launched {
  pid: number
  /** resolves at the line with `ready`; rejects if the process ends before */
  ready: Promise<void>
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  output(): string
  /** ends it cleanly and waits for that */
  stop(): Promise<void>
  kill(): Promise<void>
}

export interface LaunchOptions {
  env?: Record<string, string>
  /** the Node that runs it; left out: ours */
  node?: string
  /** a command that runs the daemon, such as `strace -f …` */
  under?: readonly string[]
  uid?: number
  gid?: number
  /** more on its command line */
  args?: readonly string[]
  /** all it prints, of which `output` keeps the end */
  hear?(text: string): void
}

export function launch(data: string, options: LaunchOptions = {}): Launched {
  const [command = process.execPath, ...args] = [
    ...(options.under ?? []),
    options.node ?? process.execPath,
    hatchwayProgram,
    'up',
    '--data',
    data,
    ...(options.args ?? []),
  ]
  const child = spawn(command, args, {
    env: {
      ...process.env,
      HATCHWAY_LOG_LEVEL: 'warn',
      // Most proofs are about the hatch; looking for sandboxes takes a second of every start.
      HATCHWAY_AGENTS_ENABLED: 'no',
      HATCHWAY_WEB_ENABLED: 'no',
      // Started by npm, as far as it knows: then it ends by itself where a test run is killed.
      npm_lifecycle_event: 'test',
      ...options.env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own, so that whatever it runs under ends with it.
    detached: true,
    ...(options.uid === undefined ? {} : { uid: options.uid }),
    ...(options.gid === undefined ? {} : { gid: options.gid }),
  })
  let output = ''
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>(resolve => {
    child.on('exit', (code, signal) => resolve({ code, signal }))
    child.on('error', () => resolve({ code: -1, signal: null }))
  })
  const ready = new Promise<void>((resolve, reject) => {
    const hear = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-20_000)
      options.hear?.(chunk.toString())
      if (/\bready\b/.test(output)) resolve()
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    exited.then(({ code, signal }) =>
      reject(new Error(`the daemon ended (${signal ?? code}) before it was ready:\n${output}`)),
    )
  })
  const signal = (name: NodeJS.Signals) => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
      process.kill(-child.pid, name)
  }
  // Whoever does not wait for `ready` learns of the end through `exited`.
  ready.catch(() => {})
  return {
    pid: child.pid ?? -1,
    ready,
    exited,
    output: () => output,
    async stop() {
      signal('SIGTERM')
      await exited
    },
    async kill() {
      signal('SIGKILL')
      await exited
    },
  }
}
