import { once } from 'node:events'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineService } from './define.ts'

test('a service written for the version before still says what it stores, and its author gets a hint', async () => {
  const warned = once(process, 'warning')
  const service = defineService({
    name: 'notes',
    tools: {
      note: {
        description: 'Keeps a note.',
        input: z.object({}),
        shelf: { name: 'notes', does: 'put' },
        call: () => ({}),
      },
    },
  })
  expect(service.tools()[0]?.dataset).toEqual({ name: 'notes', access: 'write' })
  const [{ name, message }] = await warned
  expect(name).toBe('DeprecationWarning')
  expect(message).toContain('dataset: {"name":"notes","access":"write"}')
})
