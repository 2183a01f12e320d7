import type { Client } from '@hatchway/host/api'
import { Argument, type Command } from 'commander'
import { type CommonOptions, common, type Inputs, type ValuesOf } from './inputs.ts'
import { note, printJson, printJsonArray, printLine, write } from './output.ts'
import { type Api, withClient } from './session.ts'
import type { Column } from './table.ts'

/** A command or a family of commands; it adds itself to the program, or to its family. */
export type CliCommand = (parent: Command) => void

interface Declaration<I extends Inputs> {
  input?: I
  /** arguments of a call for `--help`; one call a line */
  example?: string
  /** of its family, when no other is named */
  isDefault?: boolean
}

type Given<I extends Inputs> = ValuesOf<I> & CommonOptions

/** A command that does everything itself. `bare`: without --data, --config and --json. */
export function command<I extends Inputs>(
  name: string,
  about: string,
  declaration: Declaration<I> & { bare?: boolean; run(given: Given<I>): Promise<void> },
): CliCommand {
  const { example = '', input = {}, isDefault = false, bare = false, run } = declaration
  const inputs = Object.entries<Inputs[string]>({ ...input, ...(bare ? {} : common) })
  return parent => {
    const path = parent.parent ? `${parent.name()} ${name}` : name
    const made = parent
      .command(name, { isDefault })
      .description(about)
      .addHelpText('after', `\nExample:\n${example.replaceAll(/^/gm, `  $ npx hatchway ${path} `)}`)
    const argumentNames: string[] = []
    for (const [key, { make }] of inputs) {
      for (const each of make(key)) {
        if (each instanceof Argument) {
          argumentNames.push(key)
          made.addArgument(each)
        } else made.addOption(each)
      }
    }
    made.action(() => {
      for (const [i, key] of argumentNames.entries()) made.setOptionValue(key, made.processedArgs[i])
      return run(made.opts<Given<I>>())
    })
  }
}

/** A command that makes one call to the API and prints the answer: as JSON, or in the lines that `print` returns. */
export const call = <I extends Inputs, A>(
  name: string,
  about: string,
  {
    call: ask,
    print,
    progress,
    creates = false,
    ...declaration
  }: Declaration<I> & {
    call(client: Client, api: Api, given: Given<I>): Promise<A>
    print(answer: A, given: Given<I>): string | readonly string[] | Promise<string>
    /** what to say while it takes long */
    progress?: string
    /** it may create the data directory */
    creates?: boolean
  },
): CliCommand =>
  command(name, about, {
    ...declaration,
    async run(given) {
      const work = () => withClient(given, (client, api) => ask(client, api, given), { creates })
      const { withProgress } = await import('./progress.ts')
      const answer = await (progress === undefined ? work() : withProgress(progress, work))
      if (given.json) return printJson(answer)
      const printed = await print(answer, given)
      await printLine(typeof printed === 'string' ? printed : printed.join('\n'))
    },
  })

/** A command that lists rows of the API: as one JSON array, or as a table that fits the terminal. */
export const list = <I extends Inputs, T>(
  name: string,
  about: string,
  {
    rows,
    columns,
    empty,
    ...declaration
  }: Declaration<I> & {
    rows(client: Client, api: Api, given: Given<I>): Promise<readonly T[]> | AsyncIterable<readonly T[]>
    columns: readonly Column<T>[]
    /** what to print when there is none */
    empty: string | ((given: Given<I>) => string)
  },
): CliCommand =>
  command(name, about, {
    ...declaration,
    run: given =>
      withClient(given, async (client, api) => {
        const found = rows(client, api, given)
        const batches = Symbol.asyncIterator in found ? found : single(found)
        if (given.json) return printJsonArray(batches)
        const count = await printTable(batches, columns)
        if (count === 0) await printLine(typeof empty === 'string' ? empty : empty(given))
        if ('limit' in given && given.limit === count) note(`only ${count} are listed; --limit lists more.`)
      }),
  })

async function* single<T>(batch: Promise<T>): AsyncIterable<T> {
  yield await batch
}

async function printTable<T>(
  batches: AsyncIterable<readonly T[]>,
  columns: readonly Column<T>[],
): Promise<number> {
  const { createTable } = await import('./table.ts')
  const table = createTable(columns, terminalWidth())
  let count = 0
  for await (const batch of batches) {
    if (batch.length > 0) await write(table(batch))
    count += batch.length
  }
  return count
}

/** Undefined: nothing is cut, because no terminal shows it. */
const terminalWidth = () => (process.stdout.isTTY ? process.stdout.columns : undefined)

/** For rows that are only a part of what is printed. */
export async function tableOf<T>(columns: readonly Column<T>[], rows: readonly T[]): Promise<string> {
  const { createTable } = await import('./table.ts')
  return createTable(columns, terminalWidth())(rows).trimEnd()
}

export const family =
  (name: string, about: string, commands: readonly CliCommand[]): CliCommand =>
  program => {
    const parent = program.command(name).description(about)
    for (const add of commands) add(parent)
  }
