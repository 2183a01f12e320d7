import * as host from '@hatchway/host'
import type { HatchwayOptions } from './hatchway.ts'
import { folderOf, jidOf } from './messages.ts'

/** The only file of the benchmark that knows Hatchway's own API. */
export interface Daemon {
  ready: Promise<void>
  stop(): Promise<void>
}

const unlimited = Number.MAX_SAFE_INTEGER

/** Nothing from a file or the environment of whoever runs the benchmark may change what is measured. */
const configOf = ({ data, durability, quotas }: HatchwayOptions) =>
  host.loadConfig({
    data,
    cwd: data,
    env: {},
    overrides: {
      durability,
      logLevel: 'warn',
      ...(quotas === 'unlimited'
        ? { limits: { commandsPerMinute: unlimited, filesWaiting: unlimited } }
        : {}),
    },
  })

export const registerGroups = async (options: HatchwayOptions): Promise<void> => {
  // each registration is a commit of its own; that they survive a power loss is not what is measured
  const config = await configOf({ ...options, durability: 'process' })
  const { dialect } = options
  await host.registerGroups(
    config,
    Array.from({ length: options.groups }, (_, group) => ({
      folder: folderOf(group),
      jid: jidOf(group),
      name: folderOf(group),
      main: false,
      dialect,
    })),
  )
}

/** Returns at once; `ready` resolves when whatever was waiting is handled. */
export const startDaemon = (options: HatchwayOptions): Daemon => {
  const daemon = configOf(options).then(host.startDaemon)
  return {
    ready: daemon.then(() => {}),
    stop: async () => (await daemon).stop(),
  }
}
