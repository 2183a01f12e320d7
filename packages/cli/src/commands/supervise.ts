import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { endAsked } from '../end-asked.ts'
import { complain, exitCodes, Failure } from '../failure.ts'
import { type CommonOptions, common } from '../options.ts'
import { writesInPassing } from '../output.ts'
import { configOf } from '../session.ts'

interface SuperviseOptions extends CommonOptions {
  createMain?: boolean
}

const hatchway = fileURLToPath(new URL('../../bin/hatchway.mjs', import.meta.url))

export function addSupervise(program: Command): void {
  common(
    program
      .command('supervise')
      .description('run the daemon, start it again when it ends, and let it be deployed')
      .argument(
        '[command...]',
        'what runs the daemon, after --; left out: hatchway up with the same options',
      ),
    'supervise --data /srv/hatchway\nsupervise --data /srv/hatchway -- npm start',
  )
    .option('--create-main', 'where there is no main group yet, add one: main, for the chat local:main')
    .action(run)
}

async function run(command: string[], options: SuperviseOptions): Promise<void> {
  try {
    await keep(command, options)
    process.exitCode = exitCodes.done
  } catch (error) {
    complain(error)
  }
  process.exit()
}

async function keep(command: string[], options: SuperviseOptions): Promise<void> {
  const end = new AbortController()
  endAsked(signal => end.abort(signal))
  const { handoverFile, supervise } = await import('@hatchway/host/supervisor')
  const data = await dataDirectory(options)
  const isForeign = command.length > 0
  if (isForeign && options.createMain) {
    throw new Failure('--create-main is for hatchway up; a command of your own has to say it itself.')
  }
  writesInPassing()
  await supervise({
    handover: handoverFile(data),
    command: isForeign ? command : [process.execPath, hatchway, 'up', ...passedOn(options)],
    isForeign,
    environment: process.env,
    end: end.signal,
    say: (level, message, about = {}) =>
      process.stderr.write(
        `${JSON.stringify({ level: level === 'info' ? 30 : 50, time: Date.now(), by: 'supervisor', ...about, msg: message })}\n`,
      ),
  })
}

/** Only where nothing says it at once is the host's code needed, which a bad revision may have broken. */
async function dataDirectory(options: SuperviseOptions): Promise<string> {
  const given = options.data ?? (process.env.HATCHWAY_DATA || undefined)
  return given === undefined ? (await configOf(options)).data : resolve(given)
}

const passedOn = ({ data, config, json, createMain }: SuperviseOptions): string[] => [
  ...(data === undefined ? [] : ['--data', data]),
  ...(config === undefined ? [] : ['--config', config]),
  ...(json ? ['--json'] : []),
  ...(createMain ? ['--create-main'] : []),
]
