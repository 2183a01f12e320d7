import { type Config, startDaemon } from '@hatchway/host'

/** For programs that have a host in them: `import { loadConfig, startHost } from 'hatchway'`. */
export { type Config, type ConfigInput, defineConfig, loadConfig } from '@hatchway/host/config'

export interface RunningHost {
  /** the console's address with the token that signs in; undefined where the console is not served */
  link: string | undefined
  /** unfinished work is safe on disk, and goes on at the next start */
  stop(): Promise<void>
}

/** What `hatchway up` does, in this process. Resolves once files are handled. */
export async function startHost(config: Config): Promise<RunningHost> {
  const daemon = await startDaemon(config)
  return { link: daemon.web?.link, stop: daemon.stop }
}
