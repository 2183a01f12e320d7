import { resolveZone } from '../base/time-zone.ts'
import type { IncomingRow, Store } from './types.ts'

/**
 * Where people who write in a browser are: the browser says it with what they write. It is kept by person, as the host
 * knows them, so there are as many as may sign in.
 */
type Person = Pick<IncomingRow, 'channel' | 'senderName'>

const keyOf = ({ channel, senderName }: Person) => `time zone of ${channel}:${senderName}`

export const personZoneOf = (store: Pick<Store, 'meta'>, person: Person): string | undefined =>
  store.meta(keyOf(person)) || undefined

/** A zone that is not known here, as there are in browsers, is none. */
export function notePersonZone(store: Pick<Store, 'meta' | 'setMeta'>, person: Person, given: string): void {
  const zone = resolveZone(given)
  if (zone !== undefined && zone !== personZoneOf(store, person)) store.setMeta(keyOf(person), zone)
}
