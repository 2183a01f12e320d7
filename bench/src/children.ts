import { type ChildProcess, fork, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { asFields, asNumber } from './shape.ts'

/** A measuring process (see serve.ts), asked by name and answered once. */
export interface Child {
  pid: number
  call(method: string, argument?: unknown, seconds?: number): Promise<unknown>
  end(): Promise<void>
  /** SIGKILL; resolves when it is gone */
  kill(): Promise<void>
}

/** all that are running, with the moment they end */
const alive = new Map<ChildProcess, Promise<void>>()
/** those who have started something that would outlive them, and end it when they are asked to go */
const tidy = new Set<ChildProcess>()
const stderrKept = 4000
const stdoutKept = 20_000

/** For the way out: synchronous, as an `exit` handler must be. */
export const killChildren = () => {
  for (const child of alive.keys()) child.kill(tidy.has(child) ? 'SIGTERM' : 'SIGKILL')
}

/** For a row that failed half-way: when this resolves, nobody writes into its directory any more. */
export const endChildren = async () => {
  killChildren()
  await Promise.all(alive.values())
}

const track = (child: ChildProcess) => {
  let tail = ''
  let ended = false
  child.stderr?.on('data', (chunk: Buffer) => {
    tail = (tail + chunk.toString()).slice(-stderrKept)
  })
  const exited = new Promise<void>(resolve => {
    const gone = () => {
      ended = true
      alive.delete(child)
      tidy.delete(child)
      resolve()
    }
    child.once('exit', gone)
    child.on('error', error => {
      tail += error.message
      gone()
    })
  })
  alive.set(child, exited)
  return { exited, ended: () => ended, tail: () => tail.trim() }
}

const within = async (seconds: number, promise: Promise<void>): Promise<boolean> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>(resolve => {
    timer = setTimeout(() => resolve(false), seconds * 1000)
  })
  const inTime = await Promise.race([promise.then(() => true), late])
  clearTimeout(timer)
  return inTime
}

const endSeconds = 10
const tidySeconds = 60

interface ChildOptions {
  tidies?: boolean
  /** for Node itself */
  flags?: readonly string[]
  env?: Readonly<Record<string, string>>
}

export const startChild = (
  file: URL,
  name: string,
  { tidies = false, flags = [], env = {} }: ChildOptions = {},
): Child => {
  const child = fork(file, {
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    execArgv: [...flags],
    env: { ...process.env, ...env },
  })
  const { exited, ended, tail } = track(child)
  if (tidies) tidy.add(child)
  const open = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>()
  let calls = 0

  child.on('message', (message: unknown) => {
    const answer = asFields(message)
    const id = asNumber(answer.id)
    const waiting = open.get(id)
    open.delete(id)
    if ('error' in answer) waiting?.reject(new Error(`${name}: ${String(answer.error)}`))
    else waiting?.resolve(answer.value)
  })
  const gone = () => new Error(`${name} ended by itself (${child.exitCode ?? child.signalCode}): ${tail()}`)
  exited.then(() => {
    for (const { reject } of open.values()) reject(gone())
    open.clear()
  })

  return {
    pid: child.pid ?? 0,
    call: (method, argument, seconds = 60) =>
      new Promise((resolve, reject) => {
        if (ended()) return reject(gone())
        const id = calls++
        const timer = setTimeout(() => {
          open.delete(id)
          reject(new Error(`${name} did not answer ${method} within ${seconds} s: ${tail()}`))
        }, seconds * 1000)
        const settle =
          <T>(then: (value: T) => void) =>
          (value: T) => {
            clearTimeout(timer)
            then(value)
          }
        open.set(id, { resolve: settle(resolve), reject: settle(reject) })
        child.send({ id, method, argument })
      }),
    async end() {
      if (child.connected) child.disconnect()
      if (!(await within(tidies ? tidySeconds : endSeconds, exited))) child.kill('SIGKILL')
      await exited
    },
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** A program that is not ours. It has begun when `reachable` says so; `undefined`: it ended before that. */
export const startProgram = async (
  path: string,
  args: readonly string[],
  reachable: () => Promise<boolean>,
): Promise<{ pid: number; end(): Promise<void>; kill(): Promise<void> } | undefined> => {
  const child = spawn(path, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const { exited, ended } = track(child)
  const end = async () => {
    child.kill('SIGTERM')
    if (!(await within(endSeconds, exited))) child.kill('SIGKILL')
    await exited
  }
  const kill = async () => {
    child.kill('SIGKILL')
    await exited
  }
  for (let attempt = 0; attempt < 200 && !ended(); attempt++) {
    if (await reachable()) return { pid: child.pid ?? 0, end, kill }
    await within(0.05, exited)
  }
  await end()
  return undefined
}

/** A program that reads its orders on standard input, tells what it does line by line, and ends with its input. */
export const startPiped = (
  path: string,
  args: readonly string[],
  onLine: (line: string) => void,
  env: Readonly<Record<string, string>> = {},
) => {
  const child = spawn(path, args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...env } })
  const { exited, tail } = track(child)
  let rest = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) onLine(line)
  })
  child.stdin.on('error', error => console.error(`${path}: ${error.message}`))
  return {
    pid: child.pid ?? 0,
    say: (text: string) => child.stdin.write(text),
    close: () => child.stdin.end(),
    gone: exited.then(() => new Error(`${path} ended: ${tail()}`)),
    async end() {
      child.stdin.end()
      if (!(await within(endSeconds, exited))) child.kill('SIGKILL')
      await exited
    },
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** A program of ours, started as people start it; it has begun when it prints `word`, which is what it `said`. */
export const startCommand = async (
  file: URL,
  args: readonly string[],
  word: RegExp,
  env: Readonly<Record<string, string>> = {},
): Promise<{ pid: number; readyMs: number; said: string; end(): Promise<void> }> => {
  const begin = performance.now()
  const child = spawn(process.execPath, [fileURLToPath(file), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, HATCHWAY_LOG_LEVEL: 'warn', ...env },
  })
  const { exited, tail } = track(child)
  const { said, readyMs } = await new Promise<{ said: string; readyMs: number }>((resolve, reject) => {
    let printed = ''
    child.stdout.on('data', (chunk: Buffer) => {
      printed = (printed + chunk.toString()).slice(-stdoutKept)
      const found = word.exec(printed)?.[0]
      if (found !== undefined) resolve({ said: found, readyMs: performance.now() - begin })
    })
    exited.then(() => reject(new Error(`${fileURLToPath(file)} ended: ${tail()}`)))
  })
  return {
    pid: child.pid ?? 0,
    readyMs,
    said,
    async end() {
      child.kill('SIGTERM')
      if (!(await within(endSeconds, exited))) child.kill('SIGKILL')
      await exited
    },
  }
}
