import { discord } from './discord/kind.ts'
import { email } from './email/kind.ts'
import { irc } from './irc/kind.ts'
import type { ChannelKind } from './kind.ts'
import { matrix } from './matrix/kind.ts'
import { slack } from './slack/kind.ts'
import { telegram } from './telegram/kind.ts'
import { whatsapp } from './whatsapp/kind.ts'
import { xmpp } from './xmpp/kind.ts'

/** Every platform there is, in the order in which people are shown them. */
export const kinds: readonly ChannelKind[] = [telegram, whatsapp, slack, discord, matrix, email, xmpp, irc]

export const kindOf = (name: string): ChannelKind | undefined => kinds.find(kind => kind.name === name)
