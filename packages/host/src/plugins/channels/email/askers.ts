import type { Incoming, Received } from '../../../chat/channels/types.ts'
import { peopleIn } from './addresses.ts'

/**
 * Anybody can write to us and others at once. As long as nobody has let such a chat in, only who wrote is answered: the
 * others have not asked for anything, and would get mail from us whenever a stranger names them.
 */
export interface Askers {
  note(said: Incoming, received: Received): void
  recipients(jid: string): readonly string[]
}

const mostAskers = 1000

export function createAskers(): Askers {
  const askers = new Map<string, string>()
  return {
    note({ jid, sender }, received) {
      if (received.ok || received.error.code !== 'not_found') {
        askers.delete(jid)
        return
      }
      if (askers.size >= mostAskers) askers.clear()
      askers.set(jid, sender)
    },
    recipients(jid) {
      const asker = askers.get(jid)
      return asker === undefined ? peopleIn(jid) : [asker]
    },
  }
}
