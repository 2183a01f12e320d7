import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Host } from '../src/api/host.ts'
import { openHost } from '../src/assemble/host.ts'
import { type Layout, layoutOf } from '../src/base/layout.ts'
import { type Config, type ConfigInput, configSchema } from '../src/config.ts'
import type { CommandEvent } from '../src/intake/command-event.ts'

/** A host in this very process, on a data directory of its own, with everything it has handled written down. */
export interface Live {
  readonly data: string
  readonly config: Config
  readonly layout: Layout
  readonly host: Host
  /** in the order of execution, over every host that was opened here */
  readonly events: readonly CommandEvent[]
  /** registers and starts nothing: resolves once the files that lie there are handled */
  start(): Promise<void>
  stop(): Promise<void>
  /** ends this host, unless it has been, and opens another on the same directory, not yet started */
  reopen(): Promise<void>
  close(): Promise<void>
}

export const configFor = (data: string, input: ConfigInput = {}): Config => ({
  ...configSchema.parse({ timezone: 'UTC', logLevel: 'silent', durability: 'process', ...input }),
  data,
})

export const temporaryFolder = (name: string): string => mkdtempSync(join(tmpdir(), `hatchway-${name}-`))

/**
 * For many thousands of files: in memory, where there is room. What is proved with them is not the disk, and an ext4
 * without a journal takes a hundred times as long for a new file while it remembers those just removed.
 */
export function roomyFolder(name: string): string {
  const inMemory = '/dev/shm'
  if (!existsSync(inMemory)) return temporaryFolder(name)
  const { bavail, bsize } = statfsSync(inMemory)
  return bavail * bsize < 4 * 2 ** 30
    ? temporaryFolder(name)
    : mkdtempSync(join(inMemory, `hatchway-${name}-`))
}

export async function openLive(input: ConfigInput = {}, data = temporaryFolder('live')): Promise<Live> {
  const config = configFor(data, input)
  const events: CommandEvent[] = []
  const open = async () => {
    const opened = await openHost(config, { watch: true })
    opened.subscribe(event => events.push(event))
    return opened
  }
  let host = await open()
  let stopped = false
  const stop = async () => {
    if (!stopped) await host.stop()
    stopped = true
  }
  return {
    data,
    config,
    layout: layoutOf(data),
    get host() {
      return host
    },
    events,
    start: () => host.start(),
    stop,
    async reopen() {
      await stop()
      host = await open()
      stopped = false
    },
    async close() {
      await stop()
      rmSync(data, { recursive: true, force: true })
    },
  }
}

/** Waits for a condition, for as long as a crowded machine may need. */
export async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  ms = 30_000,
): Promise<void> {
  const deadline = performance.now() + ms
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`waited ${ms} ms in vain until ${what}`)
    await sleep(2)
  }
}
