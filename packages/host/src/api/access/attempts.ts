import { isIPv6 } from 'node:net'

/**
 * How often somebody may be wrong. A few times cost nothing; after that each costs twice the time of the one before.
 * An attempt counts when it begins: a hundred at once are not one.
 */
export interface Attempts {
  /** milliseconds until the next is allowed; 0: it is, and counts from now on */
  begin(address: string, name: string): number
  /** it was right: nothing of it counts */
  right(address: string, name: string): void
}

interface Tries {
  count: number
  blockedUntil: number
  at: number
}

/** One address may be many people, one name many addresses; who guesses a name from everywhere only slows it down. */
const rules = {
  address: { free: 5, longestMs: 900_000 },
  name: { free: 10, longestMs: 60_000 },
}
const forgottenMs = 3_600_000
const most = 10_000

export function createAttempts(now: () => number): Attempts {
  const tries = new Map<string, Tries>()

  const keysOf = (address: string, name: string) =>
    [
      [`a ${networkOf(address)}`, rules.address],
      [`n ${name.toLowerCase()}`, rules.name],
    ] as const
  const known = (key: string): Tries | undefined => {
    const found = tries.get(key)
    return found && now() - Math.max(found.at, found.blockedUntil) < forgottenMs ? found : undefined
  }

  return {
    begin(address, name) {
      const keys = keysOf(address, name)
      const blockedUntil = Math.max(...keys.map(([key]) => known(key)?.blockedUntil ?? 0))
      if (blockedUntil > now()) return blockedUntil - now()
      for (const [key, { free, longestMs }] of keys) {
        const count = (known(key)?.count ?? 0) + 1
        const pause = count < free ? 0 : Math.min(1000 * 2 ** (count - free), longestMs)
        // Behind the others: the one that was tried least recently is the first to be forgotten.
        tries.delete(key)
        tries.set(key, { count, blockedUntil: pause === 0 ? 0 : now() + pause, at: now() })
      }
      for (const key of tries.keys()) {
        if (tries.size <= most) break
        tries.delete(key)
      }
      return 0
    },
    right(address, name) {
      for (const [key] of keysOf(address, name)) tries.delete(key)
    },
  }
}

/** Whoever has one address of IPv6 has a whole network of them. */
function networkOf(address: string): string {
  if (!isIPv6(address) || address.startsWith('::ffff:')) return address
  const [head = '', tail] = address.split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = Array.from({ length: Math.max(0, 8 - before.length - after.length) }, () => '0')
  return [...before, ...(tail === undefined ? [] : zeros), ...after].slice(0, 4).join(':')
}
