import { styleText } from 'node:util'
import { absent } from './format.ts'
import type { Line } from './row.ts'

const heads = ['', 'Hatchway', 'limit or peer', 'ratio', 'target', 'met?']

const metText = (met: boolean | undefined) => (met === undefined ? absent : met ? 'yes' : 'NO')

/** A table that reads the same in a terminal and in a Markdown file. */
export const table = (lines: readonly Line[]): string => {
  const rows = [
    heads,
    ...lines.map(({ what, hatchway, against, ratio, target, met }) => [
      what,
      hatchway,
      against,
      ratio,
      target,
      metText(met),
    ]),
  ]
  const widths = heads.map((_, column) => Math.max(...rows.map(row => (row[column] ?? '').length)))
  const render = (row: readonly string[]) =>
    `| ${widths.map((width, column) => (row[column] ?? '').padEnd(width)).join(' | ')} |`
  const rule = `|${widths.map(width => '-'.repeat(width + 2)).join('|')}|`
  const [head = [], ...body] = rows
  return [render(head), rule, ...body.map(render)].join('\n')
}

/** Only the verdicts are coloured, and only where a person looks (styleText knows). */
export const coloured = (text: string): string =>
  text
    .replaceAll('| NO   |', `| ${styleText('red', 'NO')}   |`)
    .replaceAll('| yes  |', `| ${styleText('green', 'yes')}  |`)
