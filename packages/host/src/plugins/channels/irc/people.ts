import { abortable } from '../../../base/pause.ts'
import { DeliveryError } from '../../../chat/channels/types.ts'
import type { IrcClient, IrcEvent } from './line.ts'

const answerMs = 30_000
/** Nobody's account begins with this: who has only a nickname cannot pass for the account of that name. */
const unproved = '~'

/**
 * Who is who. A server with `account-tag` says it with every message; one with `extended-join` when somebody enters a channel,
 * for as long as we are in one with them.
 */
export function createPeople(client: IrcClient, mayUseNicknames: boolean) {
  const accounts = new Map<string, string>()
  const nicknames = new Map<string, string>()
  const fold = (text: string) => client.caseLower(text)
  const note = (nick: string | undefined, account: string | false | undefined) => {
    if (nick === undefined) return
    if (account) accounts.set(fold(nick), fold(account))
    else accounts.delete(fold(nick))
  }
  for (const event of ['join', 'account']) client.on(event, ({ nick, account }) => note(nick, account))
  /** Once we have left a channel, we are not told any more who has which nickname. */
  const left = (nick = '') => (fold(nick) === fold(client.user.nick) ? accounts.clear() : note(nick, false))
  for (const event of ['part', 'quit']) client.on(event, ({ nick }) => left(nick))
  client.on('kick', ({ kicked }) => left(kicked))
  client.on('nick', ({ nick = '', new_nick }) => {
    note(new_nick, accounts.get(fold(nick)))
    note(nick, false)
  })
  return {
    /** undefined: nobody knows */
    senderOf({ nick = '', account }: IrcEvent): string | undefined {
      const isTagged = client.network.cap.isEnabled('account-tag')
      const proved = isTagged ? account && fold(account) : accounts.get(fold(nick))
      const sender = proved || (mayUseNicknames ? unproved + fold(nick) : undefined)
      if (sender !== undefined) nicknames.set(sender, nick)
      return sender
    },
    /** Where to write to somebody. What is said to an account must not reach another who has its nickname now. */
    async nicknameOf(sender: string): Promise<string> {
      if (sender.startsWith(unproved)) return sender.slice(unproved.length)
      const nickname = nicknames.get(sender) ?? sender
      const { promise, resolve } = Promise.withResolvers<{ account?: string }>()
      client.whois(nickname, resolve)
      const { account = '' } = await abortable(promise, AbortSignal.timeout(answerMs))
      if (fold(account) !== sender) throw new DeliveryError(`${sender} is not on the network now.`)
      return nickname
    },
  }
}
