import { existsSync } from 'node:fs'
import type { Client } from '@hatchway/host/api'
import { Failure } from './failure.ts'
import type { CommonOptions } from './options.ts'

type Api = typeof import('@hatchway/host/api')

/** Imported when a command runs, not before: `--help` and mistakes answer at once. */
export async function configOf(options: CommonOptions) {
  const { loadConfig } = await import('@hatchway/host/config')
  return loadConfig({ data: options.data, file: options.config })
}

/**
 * Does something with the API, over the daemon's socket or, where none runs, in this process. Only what begins something
 * `mayCreate` the data directory: anywhere else one that is missing is a name that was mistyped.
 */
export async function withClient<T>(
  options: CommonOptions,
  work: (client: Client, api: Api) => Promise<T>,
  { mayCreate = false }: { mayCreate?: boolean } = {},
): Promise<T> {
  const [api, config] = await Promise.all([import('@hatchway/host/api'), configOf(options)])
  if (!mayCreate && !existsSync(config.data)) {
    throw new Failure(
      `There is no data directory ${config.data}. Name the right one with --data or --config, or begin with: npx hatchway init`,
    )
  }
  const client = await api.connect(config)
  try {
    return await work(client, api)
  } finally {
    await client.close()
  }
}
