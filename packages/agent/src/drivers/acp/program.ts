import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { Readable, Transform, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { ndJsonStream, type Stream } from '@agentclientprotocol/sdk'
import { lastWords } from '../../run/script.ts'
import { located, shellsFirst } from '../../shell/first.ts'
import type { DriverContext } from '../types.ts'
import { AcpProblem } from './problems.ts'

/**
 * The agent's program, in a process group of its own, so that nothing of it outlives its end. The shells it finds by
 * name ask first.
 */
export interface Program {
  name: string
  stream: Stream
  /** why it is no longer spoken with */
  problem(): Promise<AcpProblem>
  /** its limits begin anew */
  beginTurn(): void
  /** it is asked to end, and killed if it does not */
  end(): Promise<void>
  kill(): void
}

/** What an agent may write in one turn. */
const limits = { lineBytes: 8_388_608, turnBytes: 67_108_864, turnLines: 200_000 }
const graceMs = 2000
const exitMs = 1000
const complaintsKept = 2000

export function startProgram({ start, environment, abort }: DriverContext): Program {
  const [name, ...args] = start.driver.command ?? []
  if (name === undefined)
    throw new Error('The driver `acp` needs a program: set agents.command in the configuration.')
  const { variables } = environment
  // Looked up without those shells: the operator's own program is not a command of the agent's.
  const child = spawn(located(name, variables) ?? name, args, {
    cwd: environment.groupDirectory,
    env: { ...shellsFirst(variables), TZ: start.timezone },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  })
  let complaints = ''
  let failure: string | undefined
  let broken: AcpProblem | undefined
  let isKilled = false
  const kill = () => {
    isKilled = true
    endGroup(child)
    // What is left in it would be waited for.
    child.stdout.destroy()
  }
  const guard = guardOutput(name, problem => {
    broken = problem
    kill()
  })
  abort.addEventListener('abort', kill)
  const exited = new Promise<void>(resolve => {
    child.on('error', error => {
      failure = error.message
      guard.output.end()
      resolve()
    })
    // What it left behind in the background would hold its output open for ever.
    child.on('exit', () => endGroup(child))
    child.on('close', () => {
      guard.output.end()
      resolve()
    })
  }).finally(() => abort.removeEventListener('abort', kill))
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints = (complaints + text).slice(-complaintsKept)
    process.stderr.write(text)
  })
  // How it ended is told by its exit.
  child.stdin.on('error', () => {})

  child.stdout.pipe(guard.output)
  return {
    name,
    stream: ndJsonStream(
      Writable.toWeb(child.stdin),
      // The types of Node's streams and of the web's differ in what is never used here.
      Readable.toWeb(guard.output) as ReadableStream<Uint8Array>,
      { maxMessageBytes: limits.lineBytes },
    ),
    async problem() {
      const wasKilled = isKilled
      // Its end and the end of its output come in any order.
      const isOver = await Promise.race([exited.then(() => true), sleep(exitMs, false)])
      kill()
      await exited
      if (broken) return broken
      if (failure !== undefined)
        return new AcpProblem('acp_not_started', `${name} could not be started: ${failure}.`)
      const how = wasKilled
        ? 'was ended'
        : !isOver
          ? 'closed its output'
          : child.signalCode === null
            ? `ended with code ${child.exitCode}`
            : `ended by ${child.signalCode}`
      return new AcpProblem('acp_ended', `${name} ${how} before it had answered.${lastWords(complaints)}`)
    },
    beginTurn: guard.beginTurn,
    async end() {
      child.stdin.end()
      const timer = setTimeout(kill, graceMs)
      await exited
      clearTimeout(timer)
    },
    kill,
  }
}

/** Counts what the agent writes before anybody reads it. */
function guardOutput(name: string, exceeded: (problem: AcpProblem) => void) {
  let bytes = 0
  let lines = 0
  let lineBytes = 0
  const check = (): string | undefined => {
    if (lineBytes > limits.lineBytes) return `a line of more than ${limits.lineBytes} bytes`
    if (bytes > limits.turnBytes) return `more than ${limits.turnBytes} bytes in one turn`
    if (lines > limits.turnLines) return `more than ${limits.turnLines} lines in one turn`
    return undefined
  }
  const output = new Transform({
    transform(chunk: Buffer, _, done) {
      bytes += chunk.length
      let at = 0
      for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, at)) {
        lines++
        lineBytes += end - at
        if (lineBytes > limits.lineBytes) break
        lineBytes = 0
        at = end + 1
      }
      lineBytes += chunk.length - at
      const tooMuch = check()
      if (tooMuch === undefined) return done(null, chunk)
      const problem = new AcpProblem('acp_flood', `${name} wrote ${tooMuch}.`)
      exceeded(problem)
      done(problem)
    },
  })
  // Told by the connection, which ends with it.
  output.on('error', () => {})
  return {
    output,
    beginTurn() {
      bytes = 0
      lines = 0
    },
  }
}

function endGroup(child: ChildProcessWithoutNullStreams): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}
