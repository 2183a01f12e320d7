import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { post } from '@hatchway/spool'
import type { z } from 'zod'

/** What people have added, keys included: one file for each name, outside every sandbox, which only the host's user can read. */
export interface PrivateFiles<T> {
  names(): string[]
  of(name: string): T | undefined
  put(name: string, value: T): void
  /** whether there was one */
  remove(name: string): boolean
}

/** The names become paths: whoever calls it has checked them. */
export function openPrivateFiles<S extends z.ZodType>(
  folder: string,
  { suffix, schema, staging }: { suffix: string; schema: S; staging: string },
): PrivateFiles<z.output<S>> {
  const fileOf = (name: string) => join(folder, `${name}${suffix}`)
  return {
    names: () =>
      readdirSync(folder)
        .filter(name => name.endsWith(suffix))
        .map(name => name.slice(0, -suffix.length))
        .sort(),
    of(name) {
      const file = fileOf(name)
      return existsSync(file) ? schema.parse(JSON.parse(readFileSync(file, 'utf8'))) : undefined
    },
    put(name, value) {
      const content = `${JSON.stringify(value, null, 2)}\n`
      post(folder, content, { name: `${name}${suffix}`, staging, mode: 0o600 })
    },
    remove(name) {
      const wasThere = existsSync(fileOf(name))
      rmSync(fileOf(name), { force: true })
      return wasThere
    },
  }
}
