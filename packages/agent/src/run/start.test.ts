import { expect, test } from 'vitest'
import { parseStart } from './start.ts'

const start = {
  version: 1,
  run_id: 'r1',
  kind: 'chat',
  group: { folder: 'main', name: 'Main', jid: 'main@chat', main: true },
  assistant: 'Hatch',
  timezone: 'Europe/Lisbon',
  session_id: null,
  model: null,
  task: null,
  inputs: [{ id: 'i1', text: 'hi', sender: 'a', sender_name: 'Ann', timestamp: '2026-01-31T09:30:00Z' }],
  context: [],
  driver: { name: 'concierge' },
  events: 'auto',
}

test('a whole document is taken as it is', () => {
  expect(parseStart(JSON.stringify(start))).toEqual(start)
})

test.each([
  ['', 'is not JSON'],
  [JSON.stringify(start).slice(0, -1), 'is not JSON'],
  ['null', 'document:'],
  [JSON.stringify({ ...start, version: 2 }), 'version:'],
  [JSON.stringify({ ...start, inputs: [] }), 'inputs:'],
  [JSON.stringify({ ...start, driver: { name: 'constructor' } }), 'driver.name:'],
  [JSON.stringify({ ...start, timezone: 'Mars/Olympus' }), 'timezone:'],
])('%s is refused with the reason', (text, reason) => {
  expect(parseStart(text)).toEqual({ problem: expect.stringContaining(reason) })
})
