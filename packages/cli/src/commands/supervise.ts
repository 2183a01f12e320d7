import { resolve } from 'node:path'
import { program } from '@hatchway/host/parts'
import { command } from '../command.ts'
import { onEndRequested } from '../end-requested.ts'
import { exitCodes, runToExit, usageError } from '../failure.ts'
import { type CommonOptions, several } from '../inputs.ts'
import { outliveReader } from '../output.ts'
import { loadSettings } from '../session.ts'
import { createMain } from './up.ts'

interface SuperviseOptions extends CommonOptions {
  createMain: boolean | undefined
}

export default command('supervise', 'run the daemon, restart it when it ends, and allow deploys', {
  example: '--data /srv/hatchway\n--data /srv/hatchway -- npm start',
  input: {
    command: several('what starts the daemon, after -- (default: hatchway up with the same options)'),
    createMain,
  },
  run: ({ command, ...options }) =>
    runToExit(async () => {
      await superviseUntilEnd(command, options)
      return exitCodes.done
    }),
})

async function superviseUntilEnd(own: readonly string[], options: SuperviseOptions): Promise<void> {
  const end = new AbortController()
  onEndRequested(signal => end.abort(signal))
  const { handoverFile, supervise } = await import('@hatchway/host/supervisor')
  const data = await dataDirectory(options)
  const isForeign = own.length > 0
  if (isForeign && options.createMain)
    throw usageError('--create-main is for hatchway up. Add it to your own command instead.')
  outliveReader()
  await supervise({
    handover: handoverFile(data),
    command: isForeign ? own : [process.execPath, program, 'up', ...forwarded(options)],
    isForeign,
    environment: process.env,
    end: end.signal,
    say: (level, message, about = {}) =>
      process.stderr.write(
        `${JSON.stringify({ level: level === 'info' ? 30 : 50, time: Date.now(), by: 'supervisor', ...about, msg: message })}\n`,
      ),
  })
}

/** The host's code, which a bad revision may have broken, is only loaded if nothing else names the directory. */
async function dataDirectory(options: SuperviseOptions): Promise<string> {
  const given = options.data ?? (process.env.HATCHWAY_DATA || undefined)
  return given === undefined ? (await loadSettings(options)).data : resolve(given)
}

const forwarded = ({ data, config, json, createMain }: SuperviseOptions): string[] => [
  ...(data === undefined ? [] : ['--data', data]),
  ...(config === undefined ? [] : ['--config', config]),
  ...(json ? ['--json'] : []),
  ...(createMain ? ['--create-main'] : []),
]
