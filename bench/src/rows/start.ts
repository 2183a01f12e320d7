import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startCommand } from '../children.ts'
import { times } from '../format.ts'
import type { Line, Row, RowResult, Setting } from '../row.ts'
import { median } from '../statistics.ts'

/** What people wait for at a prompt, beside a Node that does nothing. All run from the bundle, with its compile cache. */
const program = new URL('../../../packages/cli/bin/hatchway.mjs', import.meta.url)
const quiet = { HATCHWAY_WEB_PORT: '0', HATCHWAY_LOG_LEVEL: 'error' }

const timed = (...args: string[]): number => {
  const begun = performance.now()
  execFileSync(process.execPath, args, { stdio: 'ignore' })
  return performance.now() - begun
}
const hatchway = (...args: string[]) => timed(fileURLToPath(program), ...args)

const run = async ({ directory, quick, say }: Setting): Promise<RowResult> => {
  const data = join(directory, 'data')
  const figures = { bare: [0], help: [0], ask: [0], ready: [0] }
  for (let left = quick ? 8 : 26; left > 0; left--) {
    const daemon = await startCommand(program, ['up', '--data', data, '--create-main'], /\bready\b/, quiet)
    figures.ready.push(daemon.readyMs)
    figures.bare.push(timed('-e', '0'))
    figures.help.push(hatchway('--help'))
    figures.ask.push(hatchway('groups', 'list', '--data', data))
    await daemon.end()
  }
  // The first of each fills the cache.
  for (const samples of Object.values(figures)) samples.splice(0, 2)
  const bare = median(figures.bare)
  const line = (what: string, samples: readonly number[], most: number): Line => {
    const taken = median(samples)
    say(`${what}: ${taken.toFixed(0)} ms`)
    return {
      what,
      hatchway: `${taken.toFixed(0)} ms`,
      against: `node -e 0: ${bare.toFixed(0)} ms`,
      ratio: times(taken / bare),
      target: `≤ ${most}×`,
      met: taken <= most * bare,
    }
  }
  return {
    lines: [
      line('hatchway --help', figures.help, 2),
      line('a command that asks a running daemon', figures.ask, 3),
      line('the daemon, from its start to ready', figures.ready, 10),
    ],
    figures,
    missing: [],
  }
}

export const start: Row = { name: 'start', title: 'start of commands and of the daemon', run }
