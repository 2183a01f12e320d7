import { type RunEvent, recordSeparator, runEventSchema } from '@hatchway/protocol'
import { createLines } from './lines.ts'
import type { ContainerProtocol } from './types.ts'

const noticeLimit = 2000

const eventOf = (line: string): RunEvent | undefined => {
  if (!line.startsWith(recordSeparator)) {
    const text = line.trim().slice(0, noticeLimit)
    return text === '' ? undefined : { type: 'step', kind: 'notice', text }
  }
  let parsed: unknown
  try {
    parsed = JSON.parse(line.slice(1))
  } catch {
    // Never quoted: what an agent prints is its own.
    return { type: 'step', kind: 'notice', text: 'The runner printed an event that is not JSON.' }
  }
  const event = runEventSchema.safeParse(parsed)
  return event.success
    ? event.data
    : { type: 'step', kind: 'notice', text: 'The runner printed an event of an unknown kind.' }
}

/** Hatchway's own runner: one document on standard input, events on standard output. */
export const hatchway: ContainerProtocol = {
  mountPoint: '/workspace/ipc',
  ownRunner: true,
  namesUsed: true,
  groupAt: () => [],
  stdin: start => JSON.stringify(start),
  environment: ({ group, kind, timezone }) => ({
    HATCHWAY_GROUP: group.folder,
    HATCHWAY_JID: group.jid,
    HATCHWAY_MAIN: group.main ? '1' : '0',
    HATCHWAY_SCHEDULED: kind === 'task' ? '1' : '0',
    TZ: timezone,
  }),
  files: () => [],
  createReader() {
    const lines = createLines()
    return { read: chunk => lines(chunk).flatMap(line => eventOf(line) ?? []) }
  },
}
