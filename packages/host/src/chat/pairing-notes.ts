import type { PairingRow } from '../store/types.ts'
import { addressNotes, type KnownChats, textNotes } from './approvals/lookalikes.ts'

/** What whoever decides should know about who asks to be let in: strangers choose their names, and some their addresses. */
export function pairingNotes(
  { senderName, sender, isGroup, name, jid }: PairingRow,
  chats: KnownChats,
): string[] {
  const fields: [label: string, notes: string[]][] = [
    ['name', textNotes(senderName)],
    // Where an address is its own name, that is said once.
    ['account', sender === senderName ? [] : textNotes(sender)],
    ['group', isGroup ? textNotes(name) : []],
    ['chat', [...addressNotes(jid, chats), ...textNotes(jid)]],
  ]
  return fields.flatMap(([label, notes]) => notes.map(note => `${label}: ${note}`))
}
