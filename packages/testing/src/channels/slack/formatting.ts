import { z } from 'zod'
import { SlackFailure } from './failure.ts'

/**
 * What people see of a message, and whom it calls: https://docs.slack.dev/messaging/formatting-message-text and
 * https://docs.slack.dev/reference/block-kit. Blocks that break a documented limit are refused.
 */
const plainText = z.object({ type: z.literal('plain_text'), text: z.string().min(1) })
const mrkdwnText = z.object({
  type: z.literal('mrkdwn'),
  text: z.string().min(1).max(3000),
  verbatim: z.boolean().default(false),
})
const button = z.object({
  type: z.literal('button'),
  text: plainText.extend({ text: z.string().min(1).max(75) }),
  action_id: z.string().max(255),
  style: z.enum(['primary', 'danger']).optional(),
})
const blocksSchema = z
  .array(
    z.discriminatedUnion('type', [
      z.object({ type: z.literal('section'), text: z.discriminatedUnion('type', [mrkdwnText, plainText]) }),
      z.object({ type: z.literal('actions'), elements: z.array(button).min(1).max(25) }),
      z.object({
        type: z.literal('rich_text'),
        elements: z.array(
          z.object({
            type: z.literal('rich_text_section'),
            elements: z.array(z.object({ type: z.literal('text'), text: z.string().min(1) })).min(1),
          }),
        ),
      }),
    ]),
  )
  .max(50)
export type Blocks = z.output<typeof blocksSchema>

export function blocksOf(given: unknown): Blocks {
  const parsed = blocksSchema.safeParse(given)
  if (!parsed.success) throw new SlackFailure('invalid_blocks')
  const ids = parsed.data
    .flatMap(block => (block.type === 'actions' ? block.elements : []))
    .map(one => one.action_id)
  if (new Set(ids).size !== ids.length) throw new SlackFailure('invalid_blocks')
  return parsed.data
}

/** What is read, and the calls in it: `!channel`, `@U…`. */
export interface Read {
  text: string
  calls: string[]
}

const massWords = /@(?:channel|here|everyone)\b/g

/** `links`: Slack looks for names in the plain words, too. */
export function readMrkdwn(source: string, links = false): Read {
  const calls: string[] = []
  const words = (text: string) => {
    if (links) calls.push(...(text.match(massWords) ?? []))
    return text
      .replace(/<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>/g, (_, sign: string, target: string, label?: string) => {
        if (sign === '@' || sign === '!') calls.push(`${sign}${target}`)
        return label ?? `${sign}${target}`
      })
      .replace(/(?<![\w*])\*(\S(?:[^*\n]*\S)?)\*(?![\w*])/g, '$1')
      .replace(/(?<![\w_])_(\S(?:[^_\n]*\S)?)_(?![\w_])/g, '$1')
      .replace(/(?<![\w~])~(\S(?:[^~\n]*\S)?)~(?![\w~])/g, '$1')
  }
  // Nothing within code is obeyed.
  const text = source
    .split(/(```[\s\S]*?```|`[^`\n]+`)/)
    .map((part, i) => (i % 2 === 0 ? words(part) : part.replace(/^`+\n?|\n?`+$/g, '')))
    .join('')
  return { text: text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'), calls }
}

export function readMessage(text: string, blocks: Blocks, links: boolean): Read {
  if (blocks.length === 0) return readMrkdwn(text, links)
  const parts = blocks.flatMap((block): Read[] => {
    if (block.type === 'section')
      return [
        block.text.type === 'mrkdwn'
          ? readMrkdwn(block.text.text, !block.text.verbatim)
          : { text: block.text.text, calls: [] },
      ]
    if (block.type === 'rich_text')
      return [
        {
          text: block.elements
            .flatMap(one => one.elements)
            .map(one => one.text)
            .join(''),
          calls: [],
        },
      ]
    return []
  })
  // A notification shows the text beside the blocks.
  return {
    text: parts.map(part => part.text).join('\n'),
    calls: [...parts.flatMap(part => part.calls), ...readMrkdwn(text, links).calls],
  }
}
