import { mkdtempSync, rmSync, statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { layoutOf } from '../base/layout.ts'
import { isStorageFailure } from '../base/storage-failure.ts'
import { isoOf } from '../store/entities/instant.ts'
import { inspectAside } from '../store/inspect-aside.ts'
import type { Checkup } from './answers.ts'
import type { Host } from './host.ts'

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
    channel_problems: (host.chats?.channels.all() ?? []).flatMap(channel => {
      const problem = channel.problem?.()
      return problem === undefined ? [] : [{ channel: channel.name, problem }]
    }),
    troubled: troubledIn(host),
    liveness: (host.chats?.liveness() ?? []).map(channel => ({
      channel: channel.channel,
      connected: channel.isConnected,
      since: isoOf(channel.since),
      last_error: channel.lastError ?? null,
      limited_until: channel.limitedUntil === undefined ? null : isoOf(channel.limitedUntil),
      to_confirm: channel.isToConfirm,
    })),
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
    return await inspectAside(path)
  } catch (error) {
    // The rest of the findings say what is wrong with the disk.
    if (isStorageFailure(error)) return null
    throw error
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  }
}
