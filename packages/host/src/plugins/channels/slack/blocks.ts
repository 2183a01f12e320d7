import type { ActionsBlock, KnownBlock, RichTextBlock } from '@slack/types'
import type { Card, Outgoing, Ruling } from '../../../chat/channels/types.ts'
import { decisions } from '../../../store/entities/card.ts'
import { renderMarkdown } from '../markdown.ts'
import { escaped, mrkdwn } from './markup.ts'

/** How a message is written: https://docs.slack.dev/reference/block-kit/blocks */
export interface Written {
  /** also what a notification shows */
  text: string
  blocks: KnownBlock[]
}

/** `chat.update` takes no longer text, and a section no longer one than this */
const longestText = 4000
const longestSection = 3000
const mostButtons = 25
const longestLabel = 75
/** of a notification for what is shown by blocks */
const longestNotice = 500

/** Formatted where that fits, otherwise to the letter. */
export function written(message: Pick<Outgoing, 'text' | 'kind' | 'card'>): Written {
  const { text, kind, card } = message
  const buttons = buttonsOf(card)
  // What somebody is to decide about is shown to the letter.
  const isExact = kind === 'approval' || card?.kind === 'approval'
  const formatted = isExact ? '' : renderMarkdown(text, mrkdwn)
  if (formatted === '' || formatted.length > (buttons.length > 0 ? longestSection : longestText))
    return {
      text: escaped(text.slice(0, longestNotice).toWellFormed()),
      blocks: [toTheLetter(text), ...buttons],
    }
  if (buttons.length === 0) return { text: formatted, blocks: [] }
  return {
    text: formatted,
    // Verbatim: otherwise Slack looks for names such as @here in the words.
    blocks: [{ type: 'section', text: { type: 'mrkdwn', text: formatted, verbatim: true } }, ...buttons],
  }
}

/** Rich text is told what each word is: nothing in the words is looked at. */
const toTheLetter = (text: string): RichTextBlock => ({
  type: 'rich_text',
  elements: [{ type: 'rich_text_section', elements: [{ type: 'text', text: text === '' ? ' ' : text }] }],
})

/** The buttons of a card; none for one that is settled, or that takes more than a press. */
function buttonsOf(card: Card | undefined): ActionsBlock[] {
  if (card?.card.status !== 'open') return []
  const button = (label: string, action_id: string, style?: 'primary' | 'danger') => ({
    type: 'button' as const,
    text: { type: 'plain_text' as const, text: shortened(label), emoji: false },
    action_id,
    ...(style && { style }),
  })
  if (card.kind === 'approval') {
    const { id, can_always, can_always_tool } = card.card
    return [
      {
        type: 'actions',
        elements: [
          button('Allow', `a:${id}:allow`, 'primary'),
          ...(can_always ? [button('Always', `a:${id}:always`)] : []),
          ...(can_always_tool ? [button('Always this tool', `a:${id}:always_tool`)] : []),
          button('Deny', `a:${id}:deny`, 'danger'),
        ],
      },
    ]
  }
  const { id, questions } = card.card
  const options = questions.length === 1 ? (questions[0]?.options ?? []) : []
  if (options.length === 0 || options.length > mostButtons) return []
  return [{ type: 'actions', elements: options.map(({ label }, i) => button(label, `q:${id}:${i + 1}`)) }]
}

const shortened = (label: string) =>
  label.length <= longestLabel ? label : `${label.slice(0, longestLabel - 1).toWellFormed()}…`

type Press =
  | { kind: 'choice'; id: string; option: number }
  | { kind: 'ruling'; id: string; decision: Ruling['decision'] }

/** undefined: it is no button of ours */
export function pressIn(action: string): Press | undefined {
  const [, id = '', option] = /^q:(\d+):(\d+)$/.exec(action) ?? []
  if (option !== undefined) return { kind: 'choice', id, option: Number(option) }
  const [, of = '', said] = /^a:(\d+):(\w+)$/.exec(action) ?? []
  const decision = decisions.find(one => one === said)
  return decision && { kind: 'ruling', id: of, decision }
}
