import { type AnyCommand, commandSchema, type Outcome, type Refusal, refusal } from '@hatchway/protocol'
import { quoted } from '../base/visible-text.ts'
import { titleContext } from '../store/contexts.ts'
import type { Positions } from '../store/positions.ts'
import { hostMessage } from '../store/text-message.ts'
import type { PairingRow, Store } from '../store/types.ts'
import { newCode } from './approvals/code.ts'
import { knownChats } from './approvals/lookalikes.ts'
import type { Incoming } from './channels/types.ts'
import { pairingNotes } from './pairing-notes.ts'

/**
 * How chats get in. Somebody who writes to the assistant in a chat that nobody has registered is heard by no agent; that
 * they wrote is put before the operator, once, and the operator says yes, with a folder for the group, or no.
 */
export interface Pairing {
  /** somebody wrote in a chat that nobody has registered */
  asked(channel: string, said: Incoming): void
  list(): readonly PairingRow[]
  /** by its code or its chat; a group is registered for the chat */
  approve(which: string, terms: PairingTerms, by: string): Promise<Outcome>
  deny(which: string, by: string): Outcome
  /** the chat may ask again */
  forget(which: string): Outcome
  /** what somebody says in the main chat, done once they may decide; undefined: it is about something else */
  meantBy(text: string): ((by: string) => void) | undefined
}

interface PairingTerms {
  folder: string
  name?: string | undefined
  trigger?: string | undefined
  /** false: whatever is said there is for the agent; left out: so it is in a chat with one person */
  requiresTrigger?: boolean | undefined
}

/** Anybody who finds the bot can ask: so many of a channel wait at a time, and only for so long. */
const openAtMost = 50
const openForMs = 7 * 86_400_000
/** chats that were let in or refused; one that is forgotten may ask again */
const settledAtMost = 1000
/** what the route to let somebody in takes */
const longestAddress = 1000
const outsiders = { corrupted: true, secret: false } as const
const spoken = /^(pair|refuse)\s+([A-Za-z0-9-]{4,12})(?:\s+(\S+))?(?:\s+(\S.*))?$/i

export interface PairingOptions {
  store: Store
  positions: Positions
  /** something is to be delivered */
  said(): void
  perform(command: AnyCommand): Promise<Outcome>
  now(): number
}

export function createPairing(options: PairingOptions): Pairing {
  const { store, positions, now } = options
  const { chats } = store

  const find = (which: string): PairingRow | undefined =>
    chats.pairing(which) ?? chats.pairings('open').find(({ code }) => code === which.toUpperCase())
  const missing = (): { ok: false; error: Refusal } => ({
    ok: false,
    error: refusal('not_found', 'No chat that asks to be let in has this code or address.'),
  })
  const say = (jid: string, text: string) => {
    const main = store.groups().find(group => group.main)
    if (!main) return
    store.transaction(transaction =>
      transaction.insertMessage(hostMessage(positions.next(), { folder: main.folder, jid }, text, now())),
    )
    options.said()
  }
  const tellOperator = (text: string) => {
    const main = store.groups().find(group => group.main)
    if (main) say(main.jid, text)
  }
  const settle = (row: PairingRow, status: PairingRow['status'], by: string) =>
    chats.settle(row.jid, { status, decidedAt: now(), decidedBy: by })

  const pairing: Pairing = {
    asked(channel, said) {
      if (said.jid.length > longestAddress || said.sender.length > longestAddress) return
      // In a group of people, what they say to each other is no question for us.
      const known = chats.known(said.jid)
      const isGroup = known?.isGroup ?? false
      if (isGroup && !said.mentioned) return
      chats.prunePairings({ openSince: now() - openForMs, settledAtMost })
      const open = chats.pairings('open').filter(row => row.channel === channel)
      if (chats.pairing(said.jid) || open.length >= openAtMost) return
      const row: PairingRow = {
        jid: said.jid,
        channel,
        code: newCode(),
        name: (isGroup ? known?.name : undefined) ?? said.senderName,
        isGroup,
        sender: said.sender,
        senderName: said.senderName,
        status: 'open',
        askedAt: now(),
        decidedAt: null,
        decidedBy: null,
      }
      if (!chats.ask(row)) return
      say(said.jid, 'I answer only in chats that my operator has approved. The operator has been asked.')
      tellOperator(
        [
          `${quoted(row.senderName)} (${channel} ${quoted(row.sender)}) asks to talk to me, ${
            isGroup ? `in the group ${quoted(row.name)}` : 'in a chat of their own'
          }: ${quoted(row.jid)}.`,
          ...pairingNotes(row, knownChats(store.groups())).map(note => `⚠ ${note}`),
          `To let them in, write: pair ${row.code} FOLDER (and a trigger word, if I should answer only when called)`,
          `To refuse, write: refuse ${row.code}`,
        ].join('\n'),
      )
    },
    list: () => chats.pairings(),
    async approve(which, { folder, name, trigger, requiresTrigger }, by) {
      const row = find(which)
      if (!row) return missing()
      const command = commandSchema.safeParse({
        type: 'register_group',
        payload: {
          jid: row.jid,
          folder,
          name: name ?? row.name,
          ...(trigger === undefined ? {} : { trigger }),
          requires_trigger: requiresTrigger ?? (row.isGroup || trigger !== undefined),
        },
      })
      if (!command.success) {
        const [issue] = command.error.issues
        return {
          ok: false,
          error: refusal('invalid_field', `${issue?.path.slice(1).join('.')}: ${issue?.message}`),
        }
      }
      // Before there is a group whose name the person chose: other groups' agents do not see it unless they ask.
      const isOwnName = name === undefined && !store.group(folder)
      if (isOwnName) store.taints.add(folder, titleContext, outsiders, 'the name of its chat', now())
      const outcome = await options.perform(command.data)
      if (!outcome.ok) {
        if (isOwnName && !store.group(folder)) store.taints.clear(folder, titleContext)
        return outcome
      }
      settle(row, 'approved', by)
      say(row.jid, 'You are in: from now on I answer here.')
      return outcome
    },
    deny(which, by) {
      const row = find(which)
      if (!row) return missing()
      settle(row, 'denied', by)
      return { ok: true, result: { jid: row.jid, status: 'denied' } }
    },
    forget(which) {
      const row = find(which)
      if (!row) return missing()
      chats.forgetPairing(row.jid)
      return { ok: true, result: { jid: row.jid, status: 'forgotten' } }
    },
    meantBy(text) {
      const [, verb = '', code = '', folder, trigger] = spoken.exec(text.trim()) ?? []
      if (!chats.pairings('open').some(row => row.code === code.toUpperCase())) return undefined
      if (verb.toLowerCase() === 'refuse') {
        return by => {
          pairing.deny(code, by)
          tellOperator('Refused. They are not heard, and cannot ask again.')
        }
      }
      if (folder === undefined) {
        const example = `pair ${code.toUpperCase()} family`
        return () => tellOperator(`Which folder is the group to have? Write, for example: ${example}`)
      }
      return by =>
        void pairing
          .approve(code, { folder, trigger }, by)
          .then(outcome => tellOperator(outcome.ok ? `${folder} is let in.` : outcome.error.message))
    },
  }
  return pairing
}
