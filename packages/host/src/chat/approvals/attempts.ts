/** Counts what goes wrong in a chat: after so many in a minute the next ones are not even looked at. */
export interface Attempts {
  areTooMany(jid: string): boolean
  count(jid: string): void
}

export function createAttempts(options: { perMinute: number; now(): number }): Attempts {
  const { perMinute, now } = options
  const times = new Map<string, number[]>()

  const recent = (jid: string): number[] => {
    const since = now() - 60_000
    const kept = (times.get(jid) ?? []).filter(time => time > since)
    if (kept.length === 0) times.delete(jid)
    return kept
  }
  return {
    areTooMany: jid => recent(jid).length >= perMinute,
    // Beyond the limit nobody asks when it was: more than so many need not be remembered.
    count: jid => void times.set(jid, [...recent(jid), now()].slice(-perMinute)),
  }
}
