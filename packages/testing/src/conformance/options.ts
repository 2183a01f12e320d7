import { parseArgs } from 'node:util'
import { columns } from './dialects/index.ts'
import type { Column } from './dialects/types.ts'

const help = `npm run conformance -- [options]

Runs a program that behaves as another project's container does, for each of them, in real containers against a daemon
as people start it, and writes what works to docs/conformance.md.

  --only NAME     only this one, may be given again: ${columns.map(({ id }) => id).join(', ')}
  --check         writes nothing, and fails where docs/conformance.md says something else
  --verbose       tells every step
  --help          this

It needs Docker, and to be root, to start an engine of its own. Nothing of it stays.
`

export interface Options {
  columns: readonly Column[]
  check: boolean
  verbose: boolean
}

/** a text: what to print instead, and whether that is a failure */
export function readOptions(args: readonly string[]): Options | { print: string; code: number } {
  let values: { only?: string[]; check?: boolean; verbose?: boolean; help?: boolean }
  try {
    values = parseArgs({
      args: [...args],
      options: {
        only: { type: 'string', multiple: true },
        check: { type: 'boolean' },
        verbose: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values
  } catch (error) {
    return { print: `${error instanceof Error ? error.message : error}\n\n${help}`, code: 64 }
  }
  if (values.help) return { print: help, code: 0 }
  const { only = columns.map(({ id }) => id), check = false, verbose = false } = values
  const unknown = only.find(name => !columns.some(({ id }) => id === name))
  if (unknown !== undefined) return { print: `There is no dialect ${unknown}.\n\n${help}`, code: 64 }
  return { columns: columns.filter(({ id }) => only.includes(id)), check, verbose }
}
