import { setTimeout as sleep } from 'node:timers/promises'
import { readLedger } from './ledger.ts'
import type { Mailbox } from './mailbox.ts'
import { asBigint } from './shape.ts'

interface Plan {
  count: number
  /** how long a writer that is slow may take to post them all */
  writeSeconds: number
  /** nothing for so long: what has not come out by now never does */
  quietMs: number
  /** of a poller: milliseconds between two looks */
  every?: number | undefined
}

export const patient = { writeSeconds: 10, quietMs: 4000 }
export const hasty = { writeSeconds: 4, quietMs: 2500 }
const look = 100

/** The receiver is busy with something else: whatever is posted meanwhile waits, if it can. */
const postMeanwhile = async (mailbox: Mailbox, { count, writeSeconds }: Plan) => {
  const [receiver = 0] = mailbox.pids()
  process.kill(receiver, 'SIGSTOP')
  const posted = await mailbox.burst(count, writeSeconds)
  const begin = process.hrtime.bigint()
  process.kill(receiver, 'SIGCONT')
  return { posted: posted.names.length, begin }
}

/** Until all have come out, or nothing has for a while. */
const settled = async (all: number, seen: () => number | Promise<number>, { quietMs, every = 0 }: Plan) => {
  let changedAt = performance.now()
  for (let before = -1; before < all && performance.now() - changedAt < quietMs + every; ) {
    await sleep(look)
    const now = await seen()
    if (now > before) changedAt = performance.now()
    before = now
  }
}

export interface Burst {
  posted: number
  lost: number
  /** from the moment the receiver has time again until the last is handled */
  perSecond: number
}

/** Messages posted while the receiver is busy: how many come out, and how fast. Ends the mailbox. */
export const measureBurst = async (mailbox: Mailbox, plan: Plan): Promise<Burst> => {
  const { posted, begin } = await postMeanwhile(mailbox, plan)
  const names = new Set<string>()
  let last = begin
  const seen = async () => {
    const taken = await mailbox.take()
    taken.names.forEach((name, index) => {
      names.add(name)
      const at = asBigint(taken.at[index])
      if (at > last) last = at
    })
    return names.size
  }
  await settled(posted, seen, plan)
  await mailbox.end()
  return {
    posted,
    lost: posted - names.size,
    perSecond: names.size / (Number(last - begin) / 1e9),
  }
}

export interface Crash {
  posted: number
  /** handled when the receiver was killed */
  before: number
  lost: number
  twice: number
}

/** The receiving side is killed with SIGKILL in the middle of its work, and begun again. Ends the mailbox. */
export const measureCrash = async (mailbox: Mailbox, ledger: string, plan: Plan): Promise<Crash> => {
  const { posted } = await postMeanwhile(mailbox, plan)
  const begin = performance.now()
  let before = 0
  while (before < posted / 8 && performance.now() - begin < plan.quietMs) {
    await sleep(1)
    before = readLedger(ledger).size
  }
  await mailbox.crash()
  before = readLedger(ledger).size
  await settled(posted, () => readLedger(ledger).size, plan)
  // one that is handled twice may come a moment after the last
  await sleep(look)
  await mailbox.end()
  const handled = mailbox.handled()
  const times = [...handled.values()].reduce((sum, value) => sum + value, 0)
  return { posted, before, lost: posted - handled.size, twice: times - handled.size }
}
