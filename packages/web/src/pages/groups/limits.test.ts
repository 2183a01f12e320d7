import { expect, test } from 'vitest'
import { limitInWords } from './limits.ts'

test('limits are named and told as people say them', () => {
  expect(limitInWords('commands_per_minute', 60_000)).toEqual({
    label: 'Commands per minute',
    text: '60\u202f000',
  })
  expect(limitInWords('file_bytes', 1_048_576)).toEqual({ label: 'File', text: '1.0 MB' })
  expect(limitInWords('run_ms', 1_800_000)).toEqual({ label: 'Run', text: '30 min' })
  expect(limitInWords('openTasks', 100)).toEqual({ label: 'Open tasks', text: '100' })
  expect(limitInWords('cpus', null)).toEqual({ label: 'Cpus', text: 'none' })
})
