import { tmpdir } from 'node:os'
import { parseArgs } from 'node:util'
import { reasonOf } from '@hatchway/spool'
import type { Row } from './row.ts'

export interface Options {
  rows: readonly Row[]
  quick: boolean
  minutes: number | undefined
  strict: boolean
  docs: boolean
  json: string | undefined
  directory: string
}

export const usage = (rows: readonly Row[]) => `npm run bench -- [options]

Measures Hatchway and its peers side by side on this machine, and prints one table.

  --quick           fewer rounds and files: an impression, not a figure to quote
  --minutes N       how long the row console watches memory (60, or 1 with --quick)
  --only ROW,...    only these rows:
${rows.map(({ name, title }) => `                      ${name.padEnd(8)} ${title}`).join('\n')}
  --docs            write docs/benchmark.md and its pictures; rows that are not measured stay as they are
  --json FILE       write the figures there too (always in bench/results/latest.json)
  --dir DIRECTORY   work there, on the disk you want to know about (now ${tmpdir()})
  --strict          fail when a peer is missing, as with CI=true
  --help            this text
`

/** The options, or what to tell a person who mistyped one. */
export const readOptions = (
  args: readonly string[],
  all: readonly Row[],
): Options | 'help' | { wrong: string } => {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        quick: { type: 'boolean', default: false },
        minutes: { type: 'string' },
        only: { type: 'string' },
        docs: { type: 'boolean', default: false },
        json: { type: 'string' },
        dir: { type: 'string', default: tmpdir() },
        strict: { type: 'boolean', default: process.env.CI === 'true' },
        help: { type: 'boolean', default: false },
      },
    })
    if (values.help) return 'help'
    const names = values.only?.split(',') ?? all.map(({ name }) => name)
    const unknown = names.find(name => !all.some(row => row.name === name))
    if (unknown !== undefined) return { wrong: `there is no row "${unknown}"` }
    const minutes = values.minutes === undefined ? undefined : Number(values.minutes)
    if (minutes !== undefined && !(minutes > 0 && minutes <= 10_000))
      return { wrong: `--minutes takes a number above 0, not "${values.minutes}"` }
    return {
      rows: all.filter(({ name }) => names.includes(name)),
      quick: values.quick,
      minutes,
      strict: values.strict,
      docs: values.docs,
      json: values.json,
      directory: values.dir,
    }
  } catch (error) {
    return { wrong: reasonOf(error) }
  }
}
