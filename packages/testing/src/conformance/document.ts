import { columns } from './dialects/index.ts'
import { type FeatureId, isFeature, kinds } from './features.ts'

/** undefined: it could not be tried */
export type Outcome = (column: string, feature: FeatureId) => boolean | undefined

const introduction = `# Conformance

What containers of other projects do, and whether it works here with the containers as they are. The table is written
by the run that tried all of it:

\`\`\`sh
npm run conformance
npm run conformance -- --only pynchy
\`\`\`

For each column a program behaves as that project's container does: its file names and temporary names, its pace of
looking for answers and how long it waits, its document and where it reads it, how it prints what it says, its user. It
runs in a Docker container that has nothing of Hatchway's in it, started by a daemon as people start it. What comes back
is tested from inside, to the last key; what it causes is looked at from outside, in the database, the directories and the
repositories. A row that starts with “refused” is ticked when it was refused.

✓ works · ✗ does not · – that project has no such thing

| column           | what it behaves as                                                      |
| ---------------- | ----------------------------------------------------------------------- |
| NanoClaw         | the container of NanoClaw’s repository                                  |
| NanoClaw fork    | the fork whose tasks are numbers and have models                        |
| NovaBot          | NovaBot’s code: it stays, with an inbox and an outbox                   |
| NovaBot document | NovaBot’s document: one run for each task, files written in their place |
| mdclaw           | mdclaw’s container: envelopes, plain text                               |
| Pynchy           | Pynchy’s container: requests with answers, work on the host, a stream   |
| Hatchway 1       | somebody’s own container, written after [protocol.md](protocol.md)      |

One thing to know:

- A file that is written in its place, without a rename, may be seen before it is whole. It is waited for, and a whole one
  that comes meanwhile goes ahead of it. Containers that rename keep their order at any pace.
`

const mark = (ok: boolean | undefined) => (ok === undefined ? '?' : ok ? '✓' : '✗')

export function documentOf(outcome: Outcome): string {
  const heads = ['', ...columns.map(({ title }) => title)]
  const cell = (column: (typeof columns)[number], id: FeatureId) =>
    column.has.includes(id) ? mark(outcome(column.id, id)) : '–'
  const sections = Object.entries(kinds).map(([kind, list]) => {
    const rows = Object.entries(list).flatMap(([id, { title }]) =>
      isFeature(id) ? [[title, ...columns.map(column => cell(column, id))]] : [],
    )
    return `## ${kind}\n\n${table([heads, ...rows])}\n`
  })
  return [introduction, ...sections].join('\n')
}

function table([head = [], ...rows]: readonly (readonly string[])[]): string {
  const widths = head.map((_, i) => Math.max(3, ...[head, ...rows].map(row => row[i]?.length ?? 0)))
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |`
  return [line(head), line(widths.map(width => '-'.repeat(width))), ...rows.map(line)].join('\n')
}
