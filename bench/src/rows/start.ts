import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startCommand } from '../children.ts'
import { type Contender, interleave } from '../contenders.ts'
import { absent, times, timing } from '../format.ts'
import type { Line, Row, RowResult, Setting } from '../row.ts'
import { pairedRatio } from '../statistics.ts'

/** What people wait for at a prompt, beside a Node that does nothing. All run from the bundle, with its compile cache. */
const program = new URL('../../../packages/cli/bin/hatchway.mjs', import.meta.url)
const quiet = { HATCHWAY_WEB_PORT: '0', HATCHWAY_LOG_LEVEL: 'error' }
const bareName = 'node -e 0'

const startDaemon = (data: string) =>
  startCommand(program, ['up', '--data', data, '--create-main'], /\bready\b/, quiet)

const contender = (name: string, measureMs: () => number | Promise<number>): Contender => ({
  name,
  async block(count) {
    const samples: number[] = []
    while (samples.length < count) samples.push((await measureMs()) * 1000)
    return samples
  },
  async end() {},
})

const commandContender = (name: string, ...args: string[]): Contender =>
  contender(name, () => {
    const begun = performance.now()
    execFileSync(process.execPath, args, { stdio: 'ignore' })
    return performance.now() - begun
  })

const run = async ({ directory, quick, say }: Setting): Promise<RowResult> => {
  const asked = join(directory, 'asked')
  const daemon = await startDaemon(asked)
  const hatchway = fileURLToPath(program)
  const limited = [
    { side: commandContender('hatchway --help', hatchway, '--help'), most: 2 },
    {
      side: commandContender(
        'a command that asks a running daemon',
        ...[hatchway, 'groups', 'list', '--data', asked],
      ),
      most: 3,
    },
    {
      side: contender('the daemon, from its start to ready', async () => {
        const started = await startDaemon(join(directory, 'started'))
        await started.end()
        return started.readyMs
      }),
      most: 10,
    },
  ]
  const contenders = [commandContender(bareName, '-e', '0'), ...limited.map(({ side }) => side)]
  // The round that warms up fills the caches and makes the data directory.
  const measured = await interleave(contenders, { rounds: quick ? 3 : 10, samples: 3, say })
  await daemon.end()

  const bare = measured.get(bareName)
  const lines = limited.map(({ side: { name }, most }): Line => {
    const own = measured.get(name)
    const ratio = own && bare && pairedRatio(own.medians, bare.medians)
    return {
      what: name,
      hatchway: own === undefined ? absent : timing(own),
      against: bare === undefined ? bareName : `${bareName}: ${timing(bare)}`,
      ratio: ratio === undefined ? absent : times(ratio),
      target: `≤ ${most}×`,
      ...(ratio !== undefined && { met: ratio <= most }),
    }
  })
  return { lines, figures: Object.fromEntries(measured), missing: [] }
}

export const start: Row = { name: 'start', title: 'start of commands and of the daemon', run }
