import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { RowResult } from './row.ts'
import { cellsOf, grid, heads } from './table.ts'

/** What one row of the benchmark has to show on the page. */
export interface Part {
  name: string
  /** what a reader has to know before believing it, as `quick` or `busy` */
  doubts: readonly string[]
  result: RowResult
}

interface Page {
  /** where the figures were taken: a part of another machine cannot stand beside them */
  machine: string
  /** lines of the table, each with the name of its row first */
  lines: string[][]
  /** tables and pictures of their own, by the name of their row */
  sections: Map<string, string>
}

const picturesAt = 'pictures'
const cellsIn = (line: string) =>
  line
    .slice(1, -1)
    .split('|')
    .map(cell => cell.trim())

const blocks = /<!-- part (\S+) -->\n([\s\S]*?)\n<!-- end -->/g

/** The page as it was written before. */
const readPage = (text: string): Page => {
  const sections = new Map<string, string>()
  for (const [, name = '', body = ''] of text.matchAll(blocks)) sections.set(name, body)
  const lines = (sections.get('lines') ?? '').split('\n').slice(2).map(cellsIn)
  sections.delete('lines')
  return { machine: /^Measured with (.*)\.$/m.exec(text)?.[1] ?? '', lines, sections }
}

const rowOf = ([name = '']: readonly string[]) => name.split(' ', 1)[0]

const sectionOf = ({ doubts, result }: Part): string =>
  [
    ...(result.sheets ?? []).flatMap(({ title, heads: columns, rows, notes }) => [
      `## ${title}`,
      ...(doubts.length > 0 ? [`(${doubts.join(', ')})`] : []),
      grid(columns, rows),
      notes.map(note => `- ${note}`).join('\n'),
    ]),
    ...(result.pictures ?? []).flatMap(({ name, title, notes }) => [
      `## ${title}`,
      ...(doubts.length > 0 ? [`(${doubts.join(', ')})`] : []),
      `![${title}](${picturesAt}/${name}.svg)`,
      ...(notes.length > 0 ? [notes.map(note => `- ${note}`).join('\n')] : []),
    ]),
  ].join('\n\n')

/** What was measured now takes the place of what was there of the same row; everything else stays. */
const mergePage = (before: Page, parts: readonly Part[], order: readonly string[]): Page => {
  const measured = new Set(parts.map(({ name }) => name))
  const fresh = parts.flatMap(({ name, doubts, result }) =>
    result.lines.map(line => [doubts.length > 0 ? `${name} (${doubts.join(', ')})` : name, ...cellsOf(line)]),
  )
  const kept = before.lines.filter(line => !measured.has(rowOf(line) ?? ''))
  const place = (line: readonly string[]) => order.indexOf(rowOf(line) ?? '')
  const sections = new Map(before.sections)
  for (const part of parts) {
    const section = sectionOf(part)
    if (section !== '') sections.set(part.name, section)
  }
  return {
    machine: before.machine,
    lines: [...kept, ...fresh].toSorted((a, b) => place(a) - place(b)),
    sections: new Map([...sections].toSorted(([a], [b]) => order.indexOf(a) - order.indexOf(b))),
  }
}

const block = (name: string, body: string) => `<!-- part ${name} -->\n${body}\n<!-- end -->`

const writePage = ({ machine, lines, sections }: Page): string => `# The benchmark

<!-- Written by \`npm run bench -- --docs\`: what is changed here by hand is lost with the next run. -->

Hatchway and its peers, side by side in one run. How each figure is taken, and how to take it on your own machine:
[bench/README.md](../bench/README.md). Absolute figures belong to a machine; what carries over are the ratios.

Measured with ${machine}.

${block('lines', grid(['row', ...heads], lines))}

${[...sections].map(([name, body]) => block(name, body)).join('\n\n')}
`

/** Writes `docs/benchmark.md` and its pictures; or says why not. */
export const writeDocs = (
  file: string,
  machine: string,
  parts: readonly Part[],
  order: readonly string[],
): string | undefined => {
  const before = existsSync(file) ? readPage(readFileSync(file, 'utf8')) : undefined
  const all = order.every(name => parts.some(part => part.name === name))
  if (before !== undefined && before.machine !== machine && !all) {
    return `${file} has figures of another machine (${before.machine}, not ${machine}): only a whole run may replace them`
  }
  const kept = before ?? { machine, lines: [], sections: new Map() }
  // a row that broke has nothing to show, and must not take away what it showed before
  const good = parts.filter(({ result }) => result.broken === undefined)
  const pictures = good.flatMap(({ result }) => result.pictures ?? [])
  mkdirSync(join(dirname(file), picturesAt), { recursive: true })
  for (const { name, svg } of pictures) writeFileSync(join(dirname(file), picturesAt, `${name}.svg`), svg)
  writeFileSync(file, writePage({ ...mergePage(kept, good, order), machine }))
  return undefined
}
