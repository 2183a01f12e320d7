import { appendFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * What the hostile agent writes down of what it does, in its group's folder, for whoever compares it with what the host
 * says. A line is there before the deed: one that is killed in between has at most one line too many.
 */
export type Line =
  /** a name that the host has to account for, and what has to be decided about it, where that can be said */
  | { kind: 'posted'; drop: string; file: string; codes?: readonly string[] | undefined; what?: string }
  /** so many names that the host has to account for; negative: it has taken them back itself */
  | { kind: 'count'; posted: number }
  /** a way out that it tried; `got` where it got somewhere */
  | { kind: 'tried'; what: string; got?: string }
  /** so much of something that it has used up */
  | { kind: 'used'; what: string; amount: number }
  | { kind: 'began' | 'ended'; turn: number; attack: string }
  /** the attacker's own fault: then it has not tried what it says */
  | { kind: 'failed'; attack: string; reason: string }

export const ledgerFolder = '.ledger'

export interface Ledger {
  write(line: Line): void
  /** whether it was begun before: what dies in the middle is given to the next run again */
  hasBegun(turn: number): boolean
}

export function openLedger(group: string, name: string): Ledger {
  const folder = join(group, ledgerFolder)
  mkdirSync(folder, { recursive: true })
  return {
    write: line => appendFileSync(join(folder, `${name}.jsonl`), `${JSON.stringify(line)}\n`),
    hasBegun: turn => readdirSync(folder).includes(`turn-${turn}.jsonl`),
  }
}

export function readLedger(group: string): Line[] {
  const folder = join(group, ledgerFolder)
  return readdirSync(folder).flatMap(name =>
    readFileSync(join(folder, name), 'utf8')
      .split('\n')
      .flatMap(line => {
        try {
          return line === '' ? [] : [JSON.parse(line)]
        } catch {
          // Cut off in the middle: it was killed.
          return []
        }
      }),
  )
}
