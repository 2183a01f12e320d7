import { whenCallerEnds } from './caller.ts'

/** Calls when somebody wants us to end, by a signal or by ending the process that started us for them. */
export function endAsked(then: (signal: NodeJS.Signals) => void): void {
  // Never taken off again: an impatient second Ctrl-C must not cut the end short.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => then(signal))
  if (process.channel) process.once('disconnect', () => then('SIGTERM'))
  whenCallerEnds(() => then('SIGTERM'))
}
