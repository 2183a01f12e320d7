import { existsSync, openSync, readFileSync, writeSync } from 'node:fs'
import { asText } from './shape.ts'

/** What a receiver that is going to be killed has handled: each name is in the file before the next thing is done. */
export const openLedger = (path: unknown): ((name: string) => void) => {
  if (path === undefined) return () => {}
  const file = openSync(asText(path), 'a')
  return name => writeSync(file, `${name}\n`)
}

/** How often each name was handled. */
export const readLedger = (path: string): Map<string, number> => {
  const times = new Map<string, number>()
  if (!existsSync(path)) return times
  // what follows the last line end was being written when its writer was killed
  for (const name of readFileSync(path, 'utf8').split('\n').slice(0, -1))
    times.set(name, (times.get(name) ?? 0) + 1)
  return times
}
