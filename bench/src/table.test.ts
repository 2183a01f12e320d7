import { expect, test } from 'vitest'
import { table } from './table.ts'

test('the table is aligned Markdown, and a line that has no target is neither met nor missed', () => {
  const lines = [
    {
      what: 'idle latency',
      hatchway: '210 µs',
      against: 'bare 120 µs',
      ratio: '1.75×',
      target: '≤ 2.5×',
      met: true,
    },
    { what: 'drain', hatchway: '9 files/s', against: 'loop', ratio: '0.10×', target: '≥ 0.60×', met: false },
    { what: 'peer', hatchway: '–', against: '5 µs', ratio: '–', target: '–' },
  ]
  expect(table(lines)).toBe(
    [
      '|              | Hatchway  | limit or peer | ratio | target  | met? |',
      '|--------------|-----------|---------------|-------|---------|------|',
      '| idle latency | 210 µs    | bare 120 µs   | 1.75× | ≤ 2.5×  | yes  |',
      '| drain        | 9 files/s | loop          | 0.10× | ≥ 0.60× | NO   |',
      '| peer         | –         | 5 µs          | –     | –       | –    |',
    ].join('\n'),
  )
})
