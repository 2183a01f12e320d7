import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { markedProcesses, markOf, markVariable, signal } from '../base/processes.ts'
import { createTail } from './tail.ts'

/** The daemon, as the supervisor sees it. */
export interface Child {
  pid: number | undefined
  /** how it ended, in words; never rejects */
  exited: Promise<string>
  hasExited(): boolean
  /** the end of what it said on standard error */
  lastWords(): string
  /** asks it to end, and after a while makes it */
  stop(name: NodeJS.Signals): Promise<void>
  /** with everything in its process group */
  kill(): Promise<void>
}

export interface ChildOptions {
  command: readonly string[]
  /** whether the program is the operator's own, which may not pass signals on to the daemon it runs */
  isForeign: boolean
  /** see `installationOf` */
  installation: string
  environment: NodeJS.ProcessEnv
  stopMs: number
}

const sandbox = 'daemon'
const tailBytes = 1200
const drainMs = 500
/** after this long, waiting for a killed process is given up: only the kernel can end it */
const killedMs = 10_000

export function startChild(options: ChildOptions): Child {
  const { command, isForeign, installation, environment, stopMs } = options
  const [program = '', ...args] = command
  const child = spawn(program, args, {
    env: { ...environment, [markVariable]: markOf(sandbox, installation, String(process.pid)) },
    // The channel tells the daemon when we are killed; nothing is sent over it.
    stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    detached: true,
  })
  const tail = createTail(tailBytes)
  const { stderr, pid } = child
  stderr?.on('data', (chunk: Buffer) => {
    tail.add(chunk)
    process.stderr.write(chunk)
  })
  const drained = new Promise<void>(resolve => {
    if (stderr) stderr.once('close', () => resolve())
    else resolve()
  })
  let over = false
  const toGroup = (name: NodeJS.Signals) => {
    if (pid !== undefined) signal(-pid, name)
  }
  const exited = new Promise<string>(resolve => {
    child.once('error', error => {
      over = true
      resolve(`${program} could not be started: ${error.message}`)
    })
    child.once('exit', async (code, name) => {
      over = true
      // A daemon whose wrapper is gone is nobody's.
      toGroup('SIGKILL')
      await Promise.race([drained, sleep(drainMs)])
      resolve(name === null ? `it ended with code ${code}` : `it was ended by ${name}`)
    })
  })
  const kill = async () => {
    toGroup('SIGKILL')
    await exited
  }
  return {
    pid,
    exited,
    hasExited: () => over,
    lastWords: tail.text,
    async stop(name) {
      if (isForeign) toGroup(name)
      else child.kill(name)
      const patience = new AbortController()
      const ended = await Promise.race([
        exited.then(() => true),
        sleep(stopMs, false, { signal: patience.signal }).catch(() => false),
      ])
      patience.abort()
      if (!ended) await kill()
    },
    kill,
  }
}

/**
 * What an earlier supervisor left running. A daemon ends by itself when its supervisor is gone, so it is given time for
 * that; a second one beside it would only find the data directory taken.
 */
export async function endDaemons(installation: string, patienceMs: number): Promise<number> {
  const left = () => markedProcesses(sandbox, installation).map(({ pid }) => pid)
  const found = left().length
  const end = performance.now() + patienceMs
  for (const pid of left()) signal(pid, 'SIGTERM')
  while (left().length > 0) {
    const over = performance.now() - end
    if (over > killedMs) break
    if (over > 0) for (const pid of left()) signal(pid, 'SIGKILL')
    await sleep(50)
  }
  return found
}
