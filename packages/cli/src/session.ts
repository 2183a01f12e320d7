import type { Client } from '@hatchway/host/api'
import type { CommonOptions } from './options.ts'

type Api = typeof import('@hatchway/host/api')

/** Imported when a command runs, not before: `--help` and mistakes answer at once. */
export async function configOf(options: CommonOptions) {
  const { loadConfig } = await import('@hatchway/host/config')
  return loadConfig({ data: options.data, file: options.config })
}

/** Does something with the API, over the daemon's socket or, where none runs, in this process. */
export async function withClient<T>(
  options: CommonOptions,
  work: (client: Client, api: Api) => Promise<T>,
): Promise<T> {
  const [api, config] = await Promise.all([import('@hatchway/host/api'), configOf(options)])
  const client = await api.connect(config)
  try {
    return await work(client, api)
  } finally {
    await client.close()
  }
}
