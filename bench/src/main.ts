import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { reasonOf } from '@hatchway/spool'
import { endChildren, killChildren } from './children.ts'
import { removeTree, syncDisk } from './disk.ts'
import { writeDocs } from './docs.ts'
import { describeMachine, quietEnough, shareInUse } from './machine.ts'
import { type Options, readOptions, usage } from './options.ts'
import type { Row, RowResult } from './row.ts'
import { channels } from './rows/channels.ts'
import { chat } from './rows/chat.ts'
import { consoleRow } from './rows/console.ts'
import { crowd } from './rows/crowd.ts'
import { drain } from './rows/drain.ts'
import { flow } from './rows/flow.ts'
import { growth } from './rows/growth.ts'
import { idle } from './rows/idle.ts'
import { latency } from './rows/latency.ts'
import { mcp } from './rows/mcp.ts'
import { memory } from './rows/memory.ts'
import { methodsRow } from './rows/methods.ts'
import { recall } from './rows/recall.ts'
import { receipt } from './rows/receipt.ts'
import { service } from './rows/service.ts'
import { session } from './rows/session.ts'
import { start } from './rows/start.ts'
import { coloured, grid, table } from './table.ts'

const rows: readonly Row[] = [
  latency,
  receipt,
  service,
  drain,
  flow,
  idle,
  memory,
  chat,
  channels,
  mcp,
  session,
  crowd,
  recall,
  methodsRow,
  growth,
  consoleRow,
  start,
]
const resultsDirectory = fileURLToPath(new URL('../results', import.meta.url))

const docsFile = fileURLToPath(new URL('../../docs/benchmark.md', import.meta.url))

const progress = (text: string) => process.stderr.write(`${text}\n`)

/** a row's result, with how busy others kept the machine just before it */
type Outcome = RowResult & { inUse: number }

const busy = (inUse: number) =>
  `others keep the machine ${Math.round(inUse * 100)} % busy: measure again when it is quiet`

/** What a reader of the page has to know of a figure. */
const doubtsOf = ({ inUse }: Outcome, { quick }: Options) => [
  ...(quick ? ['quick'] : []),
  ...(inUse > quietEnough ? ['machine busy'] : []),
]

/** One row that breaks must not take the others' figures with it. */
const runRow = async (row: Row, base: string, { quick, minutes }: Options): Promise<Outcome> => {
  progress(`\n${row.title}`)
  const directory = join(base, row.name)
  mkdirSync(directory)
  const say = (text: string) => progress(`  ${text}`)
  const inUse = await shareInUse()
  if (inUse > quietEnough) say(busy(inUse))
  try {
    return { ...(await row.run({ directory, quick, minutes, say })), inUse }
  } catch (error) {
    const broken = reasonOf(error)
    say(`failed: ${broken}`)
    return { lines: [], figures: {}, missing: [], broken, inUse }
  } finally {
    await endChildren()
    await removeTree(directory)
    await syncDisk()
  }
}

const runAll = async (options: Options, base: string): Promise<number> => {
  const machine = describeMachine(base)
  progress(`${machine.processor}, ${machine.cores} cores, ${machine.filesystem}, Node ${machine.node}`)
  if (machine.filesystem === 'tmpfs')
    progress('This is not a disk: syncs cost nothing here. Choose one with --dir.')
  const startedAt = new Date().toISOString()
  const results = new Map<string, Outcome>()
  for (const row of options.rows) results.set(row.name, await runRow(row, base, options))

  const all = [...results.values()]
  const lines = all.flatMap(result => result.lines)
  if (lines.length > 0) console.log(`\n${coloured(table(lines))}`)
  for (const { title, heads, rows, notes } of all.flatMap(({ sheets = [] }) => sheets))
    console.log(`\n${title}\n\n${grid(heads, rows)}\n\n${notes.join('\n')}`)
  const missing = new Set(all.flatMap(result => result.missing))
  const broken = [...results].flatMap(([name, result]) =>
    result.broken ? [`${name}: ${result.broken.split('\n', 1)[0]}`] : [],
  )
  const noisy = [...results].flatMap(([name, { inUse }]) =>
    inUse > quietEnough ? [`${name}: ${busy(inUse)}`] : [],
  )
  for (const text of [...missing, ...broken, ...noisy]) console.log(text)

  for (const { title, notes } of all.flatMap(({ pictures = [] }) => pictures))
    console.log(`\n${title}: a picture\n${notes.join('\n')}`)
  const report = { startedAt, quick: options.quick, machine, rows: Object.fromEntries(results) }
  mkdirSync(resultsDirectory, { recursive: true })
  for (const file of [join(resultsDirectory, 'latest.json'), options.json]) {
    if (file !== undefined) writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`)
  }
  for (const { name, svg } of all.flatMap(({ pictures = [] }) => pictures))
    writeFileSync(join(resultsDirectory, `${name}.svg`), svg)
  if (options.docs) {
    const parts = [...results].map(([name, result]) => ({ name, result, doubts: doubtsOf(result, options) }))
    const { cores, filesystem, node } = machine
    const where = `${cores} cores, ${filesystem}, Node ${node}`
    const refused = writeDocs(
      docsFile,
      where,
      parts,
      rows.map(({ name }) => name),
    )
    console.log(refused ?? 'docs/benchmark.md is written')
  }
  return broken.length > 0 || (options.strict && missing.size > 0) ? 1 : 0
}

const options = readOptions(process.argv.slice(2), rows)
if (options === 'help') {
  console.log(usage(rows))
} else if ('wrong' in options) {
  console.error(`${options.wrong}\n\n${usage(rows)}`)
  process.exitCode = 2
} else {
  const base = mkdtempSync(join(options.directory, 'hatchway-bench-'))
  process.on('exit', () => {
    killChildren()
    rmSync(base, { recursive: true, force: true, maxRetries: 5 })
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      progress('\nstopped; removing what was written')
      process.exit(130)
    })
  }
  process.exitCode = await runAll(options, base)
}
