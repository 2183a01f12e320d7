/** One thing a sceptic's command looked at, and what it saw. */
export interface Finding {
  what: string
  seen: string
  /** what it has to be */
  bound: string
  /** undefined: it could not be tried here, and `seen` says why */
  ok: boolean | undefined
}

const mark = ({ ok }: Finding) => (ok === undefined ? '–' : ok ? '✓' : '✗')
const columns = [
  ({ what }: Finding) => what,
  ({ seen }: Finding) => seen,
  ({ bound }: Finding) => bound,
  mark,
]
const heads = ['what', 'seen', 'has to be', '']

/** Terminal escapes in what was seen must not reach the terminal. */
const harmless = (text: string) => text.replace(/[\p{Cc}\p{Cf}]/gu, '·')

function reportTable(findings: readonly Finding[]): string {
  const cells = [heads, ...findings.map(finding => columns.map(column => harmless(column(finding))))]
  const widths = heads.map((_, i) => Math.max(...cells.map(row => row[i]?.length ?? 0)))
  const line = (row: readonly string[]) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd()
  const [head = [], ...body] = cells
  return [line(head), widths.map(width => '─'.repeat(width)).join('  '), ...body.map(line)].join('\n')
}

/** Prints the table; the exit code: 1 where something is not as it has to be, or could not be tried where it must be. */
export function report(findings: readonly Finding[]): number {
  console.log(`\n${reportTable(findings)}\n`)
  const wrong = findings.filter(({ ok }) => ok === false)
  const untried = findings.filter(({ ok }) => ok === undefined)
  const parts = [
    `${findings.length - wrong.length - untried.length} of ${findings.length} as they have to be`,
  ]
  if (wrong.length > 0) parts.push(`${wrong.length} are not`)
  if (untried.length > 0) parts.push(`${untried.length} could not be tried here`)
  console.log(parts.join(', '))
  return wrong.length > 0 || (untried.length > 0 && process.env.CI === 'true') ? 1 : 0
}
