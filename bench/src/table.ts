import { styleText } from 'node:util'
import { absent } from './format.ts'
import type { Line } from './row.ts'

export const heads = ['', 'Hatchway', 'limit or peer', 'ratio', 'target', 'met?']

const metText = (met: boolean | undefined) => (met === undefined ? absent : met ? 'yes' : 'NO')

/** A table that reads the same in a terminal and in a Markdown file. */
export const grid = (heads: readonly string[], body: readonly (readonly string[])[]): string => {
  const widths = heads.map((head, column) =>
    Math.max(head.length, ...body.map(row => (row[column] ?? '').length)),
  )
  const render = (row: readonly string[]) =>
    `| ${widths.map((width, column) => (row[column] ?? '').padEnd(width)).join(' | ')} |`
  const rule = `|${widths.map(width => '-'.repeat(width + 2)).join('|')}|`
  return [render(heads), rule, ...body.map(render)].join('\n')
}

export const cellsOf = ({ what, hatchway, against, ratio, target, met }: Line): string[] => [
  what,
  hatchway,
  against,
  ratio,
  target,
  metText(met),
]

export const table = (lines: readonly Line[]): string => grid(heads, lines.map(cellsOf))

/** Only the verdicts are coloured, and only where a person looks (styleText knows). */
export const coloured = (text: string): string =>
  text
    .replaceAll('| NO   |', `| ${styleText('red', 'NO')}   |`)
    .replaceAll('| yes  |', `| ${styleText('green', 'yes')}  |`)
