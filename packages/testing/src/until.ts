import { setTimeout as sleep } from 'node:timers/promises'

type Condition = () => boolean | Promise<boolean>

/** As long as a crowded machine may need. */
const patienceMs = 120_000

/** Waits for a condition. An error names it by `what`, or else by its code. */
export function until(condition: Condition): Promise<void>
export function until(what: string, condition: Condition, ms?: number): Promise<void>
export function until(...args: [Condition] | [string, Condition, (number | undefined)?]): Promise<void> {
  return args.length === 1 ? wait(String(args[0]), args[0], patienceMs) : wait(args[0], args[1], args[2])
}

async function wait(what: string, condition: Condition, ms = patienceMs): Promise<void> {
  const deadline = performance.now() + ms
  for (;;) {
    const begun = performance.now()
    if (await condition()) return
    const now = performance.now()
    if (now > deadline) throw new Error(`waited ${ms} ms in vain until ${what}`)
    // A look that is expensive, such as a command, is taken less often.
    await sleep(Math.min(100, Math.max(2, 5 * (now - begun))))
  }
}
