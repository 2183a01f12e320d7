import { expect, test } from 'vitest'
import { draw } from './plot.ts'

const points = (...values: number[]) => values.map((y, index) => ({ x: 10 ** index, y }))

test('every line has its name at its end, and no two names cover each other', () => {
  const names = ['Hatchway', 'poller', 'chokidar', 'C']
  const svg = draw({
    title: 'memory',
    names,
    columns: 1,
    panels: [
      {
        title: 'memory',
        across: 'groups',
        series: names.map(name => ({ name, points: points(100, 101) })),
        format: String,
      },
    ],
  })
  const places = names.map(name => Number(new RegExp(`y="([\\d.]+)" style="[^"]*">${name}<`).exec(svg)?.[1]))
  const sorted = places.toSorted((a, b) => a - b)
  expect(sorted.every((place, index) => index === 0 || place - (sorted[index - 1] ?? 0) >= 14)).toBe(true)
})

test('one that ends early is marked, says why, and what is written in it stays text', () => {
  const svg = draw({
    title: 'a < b',
    names: ['slow', 'fast'],
    columns: 1,
    panels: [
      {
        title: '1 & 2',
        across: 'files',
        series: [
          { name: 'slow', points: points(1), ended: 'longer than <90> s' },
          { name: 'fast', points: points(1, 10, 1000) },
        ],
        format: String,
      },
    ],
  })
  expect(svg).toContain('slow ✕')
  expect(svg).toContain('<desc>slow: longer than &lt;90> s</desc>')
  expect(svg).toContain('<title>a &lt; b</title>')
  expect(svg).not.toContain('NaN')
})
