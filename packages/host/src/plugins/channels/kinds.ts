import type { ChannelKind } from './kind.ts'
import { telegram } from './telegram/kind.ts'
import { whatsapp } from './whatsapp/kind.ts'

/** Every platform there is, in the order in which people are shown them. */
export const kinds: readonly ChannelKind[] = [telegram, whatsapp]

export const kindOf = (name: string): ChannelKind | undefined => kinds.find(kind => kind.name === name)
