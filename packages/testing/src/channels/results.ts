import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { type Feature, features } from '../../../host/src/plugins/channels/kind.ts'

/**
 * What the contract suite has seen people do on each channel, in `<channel>/results.json`: the documentation's table is made
 * of it. Each run of the suite compares; with `HATCHWAY_RESULTS=write` it writes.
 */
const fileOf = (channel: string) => join(import.meta.dirname, channel, 'results.json')

const names = Object.keys(features).filter((name): name is Feature => name in features)

/** as the table lists them */
export const inOrder = (seen: Iterable<string>): Feature[] => {
  const all = new Set(seen)
  return names.filter(name => all.has(name))
}

export const resultsOf = (channel: string): string[] =>
  z.array(z.string()).parse(JSON.parse(readFileSync(fileOf(channel), 'utf8')))

export const writeResults = (channel: string, seen: Iterable<string>): void =>
  writeFileSync(fileOf(channel), `${JSON.stringify(inOrder(seen))}\n`)
