import { mkdtempSync, rmSync, statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { dialectNameSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { layoutOf } from '../base/layout.ts'
import { isStorageFailure } from '../base/storage-failure.ts'
import { lookAside } from '../store/inspect-aside.ts'
import type { Host } from './host.ts'

const health = z.object({ name: z.string(), ok: z.boolean(), text: z.string() })

/** What only whoever has the data directory can tell the doctor. */
export const checkupAnswer = z.object({
  store: z
    .object({
      version: z.int(),
      newest: z.int(),
      damage: z.array(z.string()),
      installation: z.string().nullable(),
      groups: z.array(
        z.object({
          folder: z.string(),
          jid: z.string(),
          main: z.boolean(),
          dialect: dialectNameSchema,
          uid: z.int().nullable().describe('of its agents, where the host is root'),
        }),
      ),
      messages: z.object({ pending: z.int(), failed: z.int() }),
      latest: z.number().nullable(),
      audit: z.object({ ok: z.boolean(), message: z.string() }),
    })
    .nullable()
    .describe('null: there is no room for the copy that is looked at'),
  clock_jump_ms: z.number().describe('how far the clock was set since the daemon began'),
  modes: z.record(z.string(), z.enum(['events', 'polling'])),
  channels: z.record(z.string(), z.string()).describe('the channel of each group’s chat'),
  webhook: z.string().nullable().describe('why there is none'),
  troubled: z
    .array(z.object({ channel: z.string(), waiting: z.int(), error: z.string() }))
    .describe('channels that could not deliver something yet, and what they said last'),
  services: z.array(health),
  problem: z.string().nullable().describe('why nothing can be stored at the moment'),
  model: z.string().nullable().describe('what keeps agents from asking their model'),
})
export type Checkup = z.infer<typeof checkupAnswer>

/** Integrity is checked on a copy, in another thread: a large database would keep everybody waiting for seconds. */
export async function checkUp(host: Host): Promise<Checkup> {
  const groups = host.store.groups()
  return {
    store: await storeOf(host),
    clock_jump_ms: Math.round(Date.now() - (performance.timeOrigin + performance.now())),
    modes: Object.fromEntries(
      groups.flatMap(({ folder }) => {
        const mode = host.mode(folder)
        return mode === undefined ? [] : [[folder, mode]]
      }),
    ),
    channels: Object.fromEntries(
      groups.map(({ folder, jid }) => [folder, host.chats?.channelOf(jid)?.name ?? 'none']),
    ),
    webhook: host.chats?.webhook.problem ?? null,
    troubled: troubledIn(host),
    services:
      host
        .services()
        ?.catalogue.services()
        .map(({ name, ok, text }) => ({ name, ok, text })) ?? [],
    problem: host.retries.problem() ?? null,
    model: host.agents()?.modelWarning() ?? null,
  }
}

const looksAt = 10_000

/** A channel shows how it is by what it could not deliver. */
function troubledIn({ store, chats }: Host): Checkup['troubled'] {
  const found = new Map<string, Checkup['troubled'][number]>()
  for (const { jid, error } of store.messages({ status: 'pending', limit: looksAt })) {
    if (error === null) continue
    const channel = chats?.channelOf(jid)?.name ?? 'none'
    found.set(channel, { channel, waiting: (found.get(channel)?.waiting ?? 0) + 1, error })
  }
  return [...found.values()]
}

async function storeOf(host: Host): Promise<Checkup['store']> {
  const { state, database } = layoutOf(host.config.data)
  const { bavail, bsize } = statfsSync(state)
  if (statSync(database).size * 3 > bavail * bsize) return null
  let folder: string | undefined
  try {
    folder = mkdtempSync(join(state, 'backup-'))
    const path = join(folder, 'copy.db')
    await host.store.copyTo(path)
    return await lookAside(path)
  } catch (error) {
    // The rest of the findings say what is wrong with the disk.
    if (isStorageFailure(error)) return null
    throw error
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  }
}
