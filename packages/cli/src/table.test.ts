import stringWidth from 'string-width'
import { expect, test } from 'vitest'
import { type Column, createTable } from './table.ts'

interface Row {
  id: number
  name: string
  text: string
}

const columns: Column<Row>[] = [
  { title: 'ID', value: row => String(row.id), right: true },
  { title: 'NAME', value: row => row.name, flexible: true },
  { title: 'TEXT', value: row => row.text, flexible: true },
]

test('columns are aligned', async () => {
  const table = createTable(columns, undefined)
  expect(
    await table([
      { id: 1, name: 'a', text: 'x' },
      { id: 20, name: 'long name', text: 'y' },
    ]),
  ).toBe('ID  NAME       TEXT\n 1  a          x\n20  long name  y\n')
})

test('without a terminal nothing is cut', async () => {
  const text = 'word '.repeat(100).trim()
  expect(await createTable(columns, undefined)([{ id: 1, name: 'a', text }])).toContain(text)
})

test.each([40, 60, 80])('every line fits a terminal of %d columns', async width => {
  const rows = [
    { id: 1, name: 'a name that is rather long', text: 'text '.repeat(50) },
    { id: 2, name: '日本語の名前はとても長いです', text: '👩‍🚀'.repeat(60) },
  ]
  const lines = (await createTable(columns, width)(rows)).trimEnd().split('\n')
  expect(lines).toHaveLength(3)
  for (const line of lines) expect(stringWidth(line)).toBeLessThanOrEqual(width)
  expect(lines[1]).toContain('…')
})

test('a later batch continues the table without a second title', async () => {
  const table = createTable(columns, undefined)
  await table([{ id: 1, name: 'a name', text: 'x' }])
  expect(await table([{ id: 2, name: 'b', text: 'y' }])).toBe(' 2  b       y\n')
})

test('one row is one line, whatever is in it', async () => {
  const lines = await createTable(columns, undefined)([{ id: 1, name: 'a\nb', text: '\u001b[2J' }])
  expect(lines).toBe('ID  NAME  TEXT\n 1  a\\nb  \\u001b[2J\n')
})
