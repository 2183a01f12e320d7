import { openLedger } from './ledger.ts'
import type { Fields } from './shape.ts'
import { stampLog } from './stamps.ts'

/**
 * What every receiving process does with a message that it has read and parsed: it takes note, and tells when asked.
 * In its own memory; with a ledger, on the disk as well; with `record: 'count'` only of how many there were.
 */
export const receiving = () => {
  const log = stampLog()
  let lastAt = 0n
  let counts = false
  let writeDown = openLedger(undefined)
  return {
    open({ ledger, record }: Fields) {
      counts = record === 'count'
      writeDown = openLedger(ledger)
    },
    handled(name: string) {
      lastAt = process.hrtime.bigint()
      if (counts) log.count(1)
      else log.add(name, lastAt)
      writeDown(name)
    },
    methods: {
      take: () => log.take(),
      progress: () => ({ files: log.total(), at: lastAt }),
    },
  }
}
