import type { IncomingMessage, ServerResponse } from 'node:http'
import { isIPv6, type Socket } from 'node:net'
import { isLoopback } from '../config/web.ts'

/**
 * Which connections may stay. One is either
 *
 *   answering   its request has come whole, and its answer is being sent: a page, or a stream that goes on
 *   waiting     everything else: it has said nothing yet, is still sending its request, or is idle after an answer
 *
 * Where there is no room for a new one, the one of its own address that has waited longest goes; where all addresses
 * together have too many, that of the address with the most. What is being answered is never ended for another. So
 * whoever opens connections and stays silent pushes out their own, and nobody else's.
 *
 * This machine's own addresses have a reserve, so that its operator gets in whoever else is there. It counts as used
 * first, and nobody else's connection takes its place; what they have beyond it counts like that of others.
 */
export interface Connections {
  /** false: there is no room, and it has to go */
  admit(connection: Socket): boolean
  /** a request has begun to arrive on one of them */
  follow(request: IncomingMessage, response: ServerResponse): void
  /** whether the request on it is being answered */
  isAnswering(connection: Socket): boolean
}

export interface ConnectionLimits {
  /** of all addresses together */
  total: number
  perAddress: number
  /** beyond `total`, for this machine's own addresses */
  reserve: number
}

interface Known {
  connection: Socket
  address: string
  request?: IncomingMessage | undefined
}

export function createConnections(
  limits: ConnectionLimits,
  /** told of each that had to go for another, or found no room */
  onRefused: (address: string) => void = () => {},
): Connections {
  /** by `nameOf`; who has waited longest is first */
  const known = new Map<string, Known>()
  const counts = new Map<string, number>()
  /** from this machine's own addresses */
  let own = 0

  const isBusy = ({ request }: Known) => request?.complete === true
  const forget = (name: string, { connection, address }: Known) => {
    if (known.get(name)?.connection !== connection) return
    known.delete(name)
    if (isLoopback(address)) own -= 1
    const left = (counts.get(address) ?? 1) - 1
    if (left === 0) counts.delete(address)
    else counts.set(address, left)
  }
  const makeRoom = (address: string): boolean => {
    for (const [name, each] of known) {
      if (each.address !== address || isBusy(each)) continue
      forget(name, each)
      each.connection.destroy()
      onRefused(address)
      return true
    }
    return false
  }
  const largestFirst = () => [...counts].toSorted(([, a], [, b]) => b - a).map(([address]) => address)
  const isFull = (isOwn: boolean) =>
    !(isOwn && own < limits.reserve) && known.size - Math.min(own, limits.reserve) >= limits.total
  /** Whether one connection was ended that is not in the reserve, or is, for another of this machine's own. */
  const makeRoomFor = (isOwn: boolean) =>
    largestFirst().some(
      address => (isOwn || own > limits.reserve || !isLoopback(address)) && makeRoom(address),
    )

  return {
    admit(connection) {
      // Whoever has gone already has no address any more.
      if (connection.remoteAddress === undefined) return false
      const name = nameOf(connection)
      const address = addressOf(connection.remoteAddress)
      const isOwn = isLoopback(address)
      const hasRoom =
        ((counts.get(address) ?? 0) < limits.perAddress || makeRoom(address)) &&
        (!isFull(isOwn) || makeRoomFor(isOwn))
      if (!hasRoom) {
        onRefused(address)
        return false
      }
      const admitted = { connection, address }
      known.set(name, admitted)
      counts.set(address, (counts.get(address) ?? 0) + 1)
      if (isOwn) own += 1
      connection.once('close', () => forget(name, admitted))
      return true
    },
    follow(request, response) {
      const name = nameOf(request.socket)
      const found = known.get(name)
      if (!found) return
      found.request = request
      response.once('close', () => {
        if (known.get(name) !== found || found.request !== request) return
        found.request = undefined
        // It waits from now on, behind those that have waited longer.
        known.delete(name)
        known.set(name, found)
      })
    },
    isAnswering(connection) {
      const found = known.get(nameOf(connection))
      return found !== undefined && isBusy(found)
    },
  }
}

/** The same for a connection and for the TLS on it. */
const nameOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`

/** Who has one address of IPv6 has all that begin with the same four groups. */
export function addressOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '')
  if (!isIPv6(plain) || isLoopback(plain)) return plain
  const [head = '', tail] = plain.split('%')[0]?.split('::') ?? []
  const before = head.split(':').filter(Boolean)
  const after = (tail ?? '').split(':').filter(Boolean)
  const missing = tail === undefined ? 0 : 8 - before.length - after.length
  const groups = [...before, ...Array.from({ length: missing }, () => '0'), ...after]
  return groups.slice(0, 4).join(':')
}
