import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Client, Place } from '@hatchway/host/api'
import { Failure } from './failure.ts'
import type { CommonOptions } from './inputs.ts'

export type Api = typeof import('@hatchway/host/api')

/** Imported when a command runs, so that `--help` and usage errors answer at once. */
export async function loadSettings({ data, config }: CommonOptions) {
  const { loadConfig } = await import('@hatchway/host/config')
  return loadConfig({ data, file: config })
}

/** The data directory, without reading the configuration where something else names it. */
export async function findPlace(options: CommonOptions): Promise<Place> {
  const config = () => loadSettings(options)
  const named = options.data ?? (options.config === undefined && process.env.HATCHWAY_DATA)
  return { data: named ? resolve(named) : (await config()).data, config }
}

/**
 * Uses the API over the daemon's socket or, where none runs, in this process. Only a command that `creates` may make the
 * data directory: for any other, a missing one is a mistyped name.
 */
export async function withClient<T>(
  options: CommonOptions,
  work: (client: Client, api: Api) => Promise<T>,
  { creates = false }: { creates?: boolean } = {},
): Promise<T> {
  const [api, place] = await Promise.all([import('@hatchway/host/api'), findPlace(options)])
  if (!creates && !existsSync(place.data)) {
    throw new Failure(
      `There is no data directory ${place.data}. Name another one with --data or --config, or start with: npx hatchway init`,
    )
  }
  const client = await api.connect(place)
  try {
    return await work(client, api)
  } finally {
    await client.close()
  }
}

type Part = string | number
type Query = Readonly<Record<string, Part | boolean | undefined>>

/** A path of the API: parts are encoded, and an object becomes a query of the values that are set. */
export const url = (strings: TemplateStringsArray, ...parts: readonly (Part | Query)[]): string =>
  String.raw(
    { raw: strings },
    ...parts.map(part => (typeof part === 'object' ? queryOf(part) : encodeURIComponent(part))),
  )

const queryOf = (values: Query): string => {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined) query.set(name, value === true ? '1' : value === false ? '0' : String(value))
  }
  return String(query)
}
