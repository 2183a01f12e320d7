import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { markedProcesses, markOf, markVariable, signal } from '../base/processes.ts'
import { createTail } from './tail.ts'

export interface CommandOptions {
  directory: string
  ms: number
  /** see `installationOf` */
  installation: string
  deploy: number
  environment: NodeJS.ProcessEnv
  abort: AbortSignal
}

const sandbox = 'deploy'
const tailBytes = 1200
const commandShown = 200
const graceMs = 1000
const drainMs = 500

/**
 * Runs a shell command of the operator's, with everything it starts in a process group of its own. Resolves with
 * undefined, or with what went wrong and the end of what it printed.
 */
export function runCommand(command: string, options: CommandOptions): Promise<string | undefined> {
  const { directory, ms, installation, deploy, environment, abort } = options
  return new Promise(resolve => {
    if (abort.aborted) return resolve(`${shown(command)} was not started.`)
    const mark = String(deploy)
    const child = spawn('/bin/sh', ['-c', command], {
      cwd: directory,
      env: { ...commandEnvironment(environment), [markVariable]: markOf(sandbox, installation, mark) },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    const tail = createTail(tailBytes)
    child.stdout.on('data', tail.add)
    child.stderr.on('data', tail.add)
    const drained = Promise.all(
      [child.stdout, child.stderr].map(stream => new Promise(closed => stream.once('close', closed))),
    )
    let why: string | undefined
    let grace: NodeJS.Timeout | undefined
    const end = (reason: string) => {
      if (why !== undefined || child.pid === undefined) return
      why = reason
      const group = -child.pid
      signal(group, 'SIGTERM')
      grace = setTimeout(() => signal(group, 'SIGKILL'), graceMs)
    }
    const limit = setTimeout(() => end(`took longer than ${Math.round(ms / 1000)} seconds`), ms)
    const onAbort = () => end('was stopped')
    abort.addEventListener('abort', onAbort, { once: true })
    const over = (how: string | undefined) => {
      clearTimeout(limit)
      clearTimeout(grace)
      abort.removeEventListener('abort', onAbort)
      const failure = why ?? how
      if (failure === undefined) return resolve(undefined)
      const words = tail.text()
      resolve(`${shown(command)} ${failure}.${words === '' ? '' : ` The end of its output:\n${words}`}`)
    }
    child.once('error', error => over(`could not be started in ${directory}: ${error.message}`))
    child.once('exit', async (code, name) => {
      // Whatever it left in the background would work on the checkout beside the next command.
      if (child.pid !== undefined) signal(-child.pid, 'SIGKILL')
      await endCommands(installation, mark)
      await Promise.race([drained, sleep(drainMs)])
      over(code === 0 ? undefined : name === null ? `ended with code ${code}` : `was ended by ${name}`)
    })
  })
}

/** The receipt that it stands in is not to be filled by it. */
export const shown = (command: string): string =>
  `\`${command.length > commandShown ? `${command.slice(0, commandShown)}…` : command}\``

/** Ends what commands of a process that was killed, or one that is over, left running. */
export async function endCommands(installation: string, mark?: string): Promise<void> {
  for (let attempts = 0; attempts < 50; attempts++) {
    const left = markedProcesses(sandbox, installation, mark)
    if (left.length === 0) return
    for (const { pid } of left) signal(pid, 'SIGKILL')
    await sleep(50)
  }
}

const passed =
  /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|TMPDIR|CI|XDG_\w+|SSL_CERT_\w+|NODE_EXTRA_CA_CERTS|(https?|no|all)_proxy|npm_config_\w+)$/i

/** What building takes. The daemon's secrets are not for whatever a build runs. */
const commandEnvironment = (environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => passed.test(name)))
