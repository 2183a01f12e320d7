import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { post } from '@hatchway/spool'
import { z } from 'zod'

/** What somebody has added: one file for each channel, which only the host's user can read. */
export interface Accounts {
  all(): readonly Account[]
  of(kind: string): Account | undefined
  put(account: Account): void
  /** whether there was one */
  remove(kind: string): boolean
}

const accountSchema = z.object({ kind: z.string(), settings: z.record(z.string(), z.unknown()) })
export type Account = z.output<typeof accountSchema>

export function openAccounts(folder: string, staging: string): Accounts {
  const suffix = '.account.json'
  const fileOf = (kind: string) => join(folder, `${kind}${suffix}`)
  const read = (path: string) => accountSchema.parse(JSON.parse(readFileSync(path, 'utf8')))
  return {
    all: () =>
      readdirSync(folder)
        .filter(name => name.endsWith(suffix))
        .sort()
        .map(name => read(join(folder, name))),
    of: kind => (existsSync(fileOf(kind)) ? read(fileOf(kind)) : undefined),
    put(account) {
      const content = `${JSON.stringify(account, null, 2)}\n`
      post(folder, content, { name: `${account.kind}${suffix}`, staging, mode: 0o600 })
    },
    remove(kind) {
      const wasThere = existsSync(fileOf(kind))
      rmSync(fileOf(kind), { force: true })
      return wasThere
    },
  }
}
