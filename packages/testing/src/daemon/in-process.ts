import { rmSync } from 'node:fs'
import type { Host } from '../../../host/src/api/host.ts'
import { openHost } from '../../../host/src/assemble/host.ts'
import { type Layout, layoutOf } from '../../../host/src/base/layout.ts'
import { type Config, type ConfigInput, configSchema } from '../../../host/src/config.ts'
import type { CommandEvent } from '../../../host/src/store/types.ts'
import { temporaryFolder } from '../folders.ts'

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
