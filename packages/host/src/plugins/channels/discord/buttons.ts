import type { APIActionRowComponent, APIButtonComponentWithCustomId } from '@discordjs/core'
import type { Card, Ruling } from '../../../chat/channels/types.ts'
import { decisions } from '../../../store/entities/card.ts'

/** What a button means is in its id, which may have 100 characters: `hw:q:<card>:<option>` or `hw:a:<card>:<decision>`. */
export type Press =
  | { kind: 'choice'; id: string; option: number }
  | { kind: 'ruling'; id: string; decision: Ruling['decision'] }

type Row = APIActionRowComponent<APIButtonComponentWithCustomId>

/** five rows of five */
const mostButtons = 25
const perRow = 5
const longestLabel = 80

const actionRow = 1
const button = 2
const styles = { primary: 1, secondary: 2, success: 3, danger: 4 } as const

/** The buttons of a card; none for one that is settled, or that takes more than a press. */
export function buttonsOf(card: Card | undefined): Row[] {
  if (card?.card.status !== 'open') return []
  const of = (
    label: string,
    custom_id: string,
    style: keyof typeof styles,
  ): APIButtonComponentWithCustomId => ({
    type: button,
    label: shortened(label),
    custom_id,
    style: styles[style],
  })
  if (card.kind === 'approval') {
    const { id, can_always, can_always_tool } = card.card
    const decide = (label: string, decision: Ruling['decision'], style: keyof typeof styles) =>
      of(label, `hw:a:${id}:${decision}`, style)
    const some = [
      decide('Allow', 'allow', 'success'),
      ...(can_always ? [decide('Always', 'always', 'secondary')] : []),
      ...(can_always_tool ? [decide('Always this tool', 'always_tool', 'secondary')] : []),
      decide('Deny', 'deny', 'danger'),
    ]
    return [{ type: actionRow, components: some }]
  }
  const { id, questions } = card.card
  const options = questions.length === 1 ? (questions[0]?.options ?? []) : []
  if (options.length > mostButtons) return []
  const all = options.map(({ label }, index) => of(label, `hw:q:${id}:${index + 1}`, 'primary'))
  // A few stand below each other, where long ones have room.
  const width = all.length <= perRow ? 1 : perRow
  return Array.from({ length: Math.ceil(all.length / width) }, (_, row) => ({
    type: actionRow,
    components: all.slice(row * width, (row + 1) * width),
  }))
}

const shortened = (label: string) =>
  label.length <= longestLabel ? label : `${label.slice(0, longestLabel - 1).toWellFormed()}…`

/** undefined: it is no button of ours */
export function pressIn(customId: string): Press | undefined {
  const [, id = '', option] = /^hw:q:(\d+):(\d+)$/.exec(customId) ?? []
  if (option !== undefined) return { kind: 'choice', id, option: Number(option) }
  const [, of = '', said] = /^hw:a:(\d+):(\w+)$/.exec(customId) ?? []
  const decision = decisions.find(one => one === said)
  return decision && { kind: 'ruling', id: of, decision }
}
