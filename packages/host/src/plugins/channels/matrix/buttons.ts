import { z } from 'zod'
import type { Card, ChannelHost, Ruling } from '../../../chat/channels/types.ts'
import { decisions } from '../../../store/entities/card.ts'

/**
 * Matrix has no buttons. Reactions do in their place: the assistant puts them under the card, and whoever taps one of them
 * reacts with the same emoji. The options of a question have numbers in its text; other reactions have a line that says what
 * they mean.
 */
export interface Button {
  emoji: string
  /** what the text does not say */
  label?: string
  press: Press
}
export type Press = { option: number } | { decision: Ruling['decision'] }

const numbers = ['1️⃣', '2️⃣', '3️⃣', '4️⃣', '5️⃣']

/** None for a card that is settled, that takes more than a press, or has too many options. */
export function buttonsOf(card: Card | undefined, isEncrypted: boolean): readonly Button[] {
  if (card?.card.status !== 'open') return []
  if (card.kind === 'approval') {
    // Reactions are never encrypted: with one, the server could decide. The code in words is encrypted.
    if (isEncrypted) return []
    const button = (emoji: string, label: string, decision: Ruling['decision']) => ({
      emoji,
      label,
      press: { decision },
    })
    return [
      button('✅', 'Allow', 'allow'),
      ...(card.card.can_always ? [button('♾️', 'Always', 'always')] : []),
      ...(card.card.can_always_tool ? [button('🧰', 'Always this tool', 'always_tool')] : []),
      button('❌', 'Deny', 'deny'),
    ]
  }
  const { questions } = card.card
  const options = questions.length === 1 ? (questions[0]?.options ?? []) : []
  if (options.length > numbers.length) return []
  return numbers.slice(0, options.length).map((emoji, index) => ({ emoji, press: { option: index + 1 } }))
}

export const legendOf = (buttons: readonly Button[]): string =>
  buttons.map(({ emoji, label }) => (label === undefined ? '' : `\n${emoji} ${label}`)).join('')

/** What is known of a card that has buttons, until it is settled: by the id of its message. */
const shownSchema = z.object({
  kind: z.enum(['question', 'approval']),
  id: z.string(),
  buttons: z.array(
    z.object({
      emoji: z.string(),
      press: z.union([z.object({ option: z.int() }), z.object({ decision: z.enum(decisions) })]),
    }),
  ),
  /** the ids of our reactions */
  reactions: z.array(z.string()),
})
export type ShownCard = z.output<typeof shownSchema>

const keyOf = (event: string) => `card:${event}`
type Memory = Pick<ChannelHost, 'recall' | 'remember'>

export function recallCard(memory: Memory, event: string): ShownCard | undefined {
  const stored = memory.recall(keyOf(event))
  return stored === undefined ? undefined : shownSchema.parse(JSON.parse(stored))
}
export const rememberCard = (memory: Memory, event: string, card: ShownCard | undefined): void =>
  memory.remember(keyOf(event), card && JSON.stringify(card))

/** Apps differ in the sign that asks for a colourful emoji. */
const bare = (emoji: string) => emoji.replaceAll('\ufe0f', '')

export const pressIn = (card: ShownCard, emoji: string): Press | undefined =>
  card.buttons.find(button => bare(button.emoji) === bare(emoji))?.press
