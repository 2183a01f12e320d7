import type { InlineKeyboardMarkup } from 'grammy/types'
import type { Card, Ruling } from '../../../chat/channels/types.ts'
import { decisions } from '../../../store/entities/card.ts'

/** Data of a button may have 64 bytes: `q:<card>:<option>` and `a:<card>:<decision>` have fewer than 30. */
export type Press =
  | { kind: 'choice'; id: string; option: number }
  | { kind: 'ruling'; id: string; decision: Ruling['decision'] }

/** a keyboard may have 100 buttons */
const mostButtons = 100
/** what a phone shows of one */
const longestLabel = 64

const none: InlineKeyboardMarkup = { inline_keyboard: [] }

/** The buttons of a card; none for one that is settled, or that takes more than a press. */
export function keyboardOf(card: Card | undefined): InlineKeyboardMarkup {
  if (card?.card.status !== 'open') return none
  if (card.kind === 'approval') {
    const { id, can_always, can_always_tool } = card.card
    const button = (text: string, decision: Ruling['decision']) => ({
      text,
      callback_data: `a:${id}:${decision}`,
    })
    return {
      inline_keyboard: [
        [
          button('Allow', 'allow'),
          ...(can_always ? [button('Always', 'always')] : []),
          button('Deny', 'deny'),
        ],
        ...(can_always_tool ? [[button('Always this tool', 'always_tool')]] : []),
      ],
    }
  }
  const { id, questions } = card.card
  const options = questions.length === 1 ? (questions[0]?.options ?? []) : []
  if (options.length > mostButtons) return none
  return {
    inline_keyboard: options.map(({ label }, index) => [
      { text: shortened(label), callback_data: `q:${id}:${index + 1}` },
    ]),
  }
}

const shortened = (label: string) =>
  label.length <= longestLabel ? label : `${label.slice(0, longestLabel - 1).toWellFormed()}…`

/** undefined: it is no button of ours */
export function pressIn(data: string | undefined): Press | undefined {
  const [, id = '', option] = /^q:(\d+):(\d+)$/.exec(data ?? '') ?? []
  if (option !== undefined) return { kind: 'choice', id, option: Number(option) }
  const [, of = '', said] = /^a:(\d+):(\w+)$/.exec(data ?? '') ?? []
  const decision = decisions.find(one => one === said)
  return decision && { kind: 'ruling', id: of, decision }
}
