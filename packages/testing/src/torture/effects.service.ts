import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineService } from '@hatchway/host/service'
import { z } from 'zod'

/** A service that does something in the world outside: each call leaves a line in a file that nobody takes back. */
const file = process.env.TORTURE_EFFECTS ?? ''
const input = z.object({ text: z.string(), ms: z.int() })
const harmless = {
  public_source: 'no',
  secret_data: 'no',
  public_sink: 'no',
  dangerous_writes: 'no',
} as const
/** where the group has secrets, a person is asked first */
const risky = { ...harmless, public_sink: 'yes', dangerous_writes: 'yes' } as const

const tool = (name: string, repeatable: boolean, labels: typeof harmless | typeof risky) => ({
  description: 'Leaves a line.',
  input,
  labels,
  repeatable,
  timeoutMs: 3_600_000,
  async call({ text, ms }: z.infer<typeof input>, { signal }: { signal: AbortSignal }) {
    appendFileSync(file, `${name} ${text}\n`)
    await sleep(ms, undefined, { signal })
    return { text }
  },
})

export default defineService({
  name: 'effects',
  tools: {
    note_again: tool('note_again', true, harmless),
    note_once: tool('note_once', false, harmless),
    publish_again: tool('publish_again', true, risky),
    publish_once: tool('publish_once', false, risky),
  },
})
