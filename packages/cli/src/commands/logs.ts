import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { platform } from '@hatchway/host/platform'
import { command } from '../command.ts'
import { Failure } from '../failure.ts'
import { when } from '../format.ts'
import { type CommonOptions, flag, parsed, positive, withDefault, withShort } from '../inputs.ts'
import { note, printJsonLine, printLine } from '../output.ts'
import { findData, serviceData } from '../service/data.ts'
import { type Machine, thisMachine } from '../service/machine.ts'
import { findManager, serviceInputs } from '../service/manager.ts'
import type { Manager } from '../service/types.ts'
import { visible } from '../text.ts'

/** Also a command of the family `service`. */
export default command('logs', 'show the daemon’s log', {
  example: '-f\n-n 1000 --json',
  input: {
    follow: withShort('f', flag('keep printing new lines, until Ctrl-C')),
    lines: withShort('n', withDefault(parsed('number', 'how many lines', positive), 100)),
    ...serviceInputs,
  },
  async run({ follow = false, lines, json, ...options }) {
    const machine = thisMachine()
    const manager = findManager(options, machine, { existing: true })
    const [program, ...args] = await sourceOf(options, manager, { lines, follow })
    const count = await each([program, ...args], machine, line =>
      json ? printJsonLine(parsedLine(line)) : printLine(readable(line)),
    )
    if (count === 0 && !json) note('the log is empty.')
  },
})

/** What prints the log: of the service, or of a daemon whose standard error is a file. */
async function sourceOf(
  options: CommonOptions,
  manager: Manager,
  { lines, follow }: { lines: number; follow: boolean },
): Promise<readonly [string, ...string[]]> {
  const ofService = serviceData(manager)
  const data = options.data === undefined ? ofService : await findData(options)
  if (ofService !== undefined && data === ofService) return manager.logs(lines, follow)
  const { findDaemon } = await import('@hatchway/host/api')
  const daemon = await findDaemon(data ?? (await findData(options)))
  const file = daemon?.pid === undefined ? undefined : errorFileOf(daemon.pid)
  if (file !== undefined) return ['tail', '-n', String(lines), ...(follow ? ['-F'] : []), file]
  throw new Failure(
    daemon
      ? `The daemon (process ${daemon.pid}) was not started as a service: its log is where its standard error goes, such as the terminal it was started in, or docker compose logs. A service keeps its log: hatchway service install`
      : 'No service is installed and no daemon is running, so there is no log. Install the service with: hatchway service install',
  )
}

/** undefined: it is no file, or this system does not tell. */
function errorFileOf(pid: number): string | undefined {
  const path = platform.errorOutput(pid)
  return path !== undefined && statSync(path, { throwIfNoEntry: false })?.isFile() ? path : undefined
}

const noEntries = '-- No entries --'

/** How many lines there were. */
async function each(
  [program, ...args]: readonly [string, ...string[]],
  { env }: Machine,
  print: (line: string) => Promise<void>,
): Promise<number> {
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'close')
  const failed = ended.catch((error: Error) => {
    throw new Failure(`\`${program}\` cannot be started: ${error.message}`)
  })
  let count = 0
  for await (const line of createInterface({ input: child.stdout })) {
    if (line === '' || line === noEntries) continue
    count++
    await print(line)
  }
  const [code] = await failed
  if (code !== 0) throw new Failure(`\`${[program, ...args].join(' ')}\` ended with exit code ${code}.`)
  return count
}

/** The daemon also announces a few lines that are not JSON. */
function parsedLine(line: string): Record<string, unknown> {
  try {
    const found: unknown = JSON.parse(line)
    return typeof found === 'object' && found !== null ? { ...found } : { msg: line }
  } catch (error) {
    if (error instanceof SyntaxError) return { msg: line }
    throw error
  }
}

const levels = new Map<unknown, string>([
  [10, 'TRACE'],
  [20, 'DEBUG'],
  [30, 'INFO '],
  [40, 'WARN '],
  [50, 'ERROR'],
  [60, 'FATAL'],
])

function readable(line: string): string {
  const { level, time, msg, err, ...about } = parsedLine(line)
  if (typeof time !== 'number') return visible(line)
  const reason = typeof err === 'object' && err !== null && 'message' in err ? { reason: err.message } : {}
  const rest = Object.entries({ ...about, ...reason }).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const parts = [when(new Date(time).toISOString()), levels.get(level) ?? '     ', msg, ...rest]
  return visible(parts.join(' '))
}
