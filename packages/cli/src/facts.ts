import { wrapped } from './width.ts'

export type Fact = readonly [name: string, value: string]

/** A detail view: one fact a line, values aligned and wrapped. */
export function facts(pairs: readonly Fact[], columns = Number.POSITIVE_INFINITY): string[] {
  const width = Math.max(...pairs.map(([name]) => name.length)) + 2
  return pairs.flatMap(([name, value]) =>
    wrapped(value, columns - width).map((part, i) => (i === 0 ? name : '').padEnd(width) + part),
  )
}

const bar = '│ '

/** A text of several lines, each marked, so that none of them can pass for a line of ours. */
export const quoted = (text: string, columns = Number.POSITIVE_INFINITY): string[] =>
  text
    .split('\n')
    .flatMap(line => wrapped(line.replace(/\r$/, ''), columns - bar.length).map(part => bar + part))
