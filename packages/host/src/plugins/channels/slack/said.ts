import { z } from 'zod'
import type { KnownChat } from '../../../chat/channels/types.ts'

/** What events and messages of Slack mean to us: https://docs.slack.dev/reference/events/message */

export const jidOf = (channel: string): string => `slack:${channel}`
export const chatIn = (jid: string): string => jid.slice('slack:'.length)
export const isOurs = (jid: string): boolean => /^slack:[CDG][A-Z0-9]{2,20}$/.test(jid)

const timestamp = z.string().regex(/^\d{10}\.\d{6}$/)
/** milliseconds since 1970, of what is also the id of a message within its chat */
export const timeOf = (ts: string): number => Math.floor(Number(ts) * 1000)

const fileSchema = z.object({
  id: z.string(),
  name: z.string().nullish(),
  mimetype: z.string().nullish(),
  mode: z.string().optional(),
  is_external: z.boolean().optional(),
  /** `check_file_info`: the rest has to be asked for */
  file_access: z.string().optional(),
  url_private: z.string().optional(),
  url_private_download: z.string().optional(),
})
export type SlackFile = z.output<typeof fileSchema>

const contentSchema = z.object({
  subtype: z.string().optional(),
  user: z.string().optional(),
  bot_id: z.string().optional(),
  text: z.string().nullish(),
  ts: timestamp,
  thread_ts: timestamp.optional(),
  parent_user_id: z.string().optional(),
  latest_reply: z.string().optional(),
  files: z.array(fileSchema).optional(),
  /** a message that is passed on has no words of its own */
  attachments: z
    .array(
      z.object({
        is_share: z.boolean().optional(),
        author_name: z.string().nullish(),
        text: z.string().nullish(),
      }),
    )
    .optional(),
})

export const messageSchema = contentSchema.extend({
  channel: z.string(),
  channel_type: z.string().optional(),
  /** of a message that was changed: what it says now and said before; of one that was deleted: what it said */
  message: contentSchema.optional(),
  previous_message: contentSchema.optional(),
})
export type SlackMessage = z.output<typeof messageSchema>

export const reactionSchema = z.object({
  user: z.string(),
  reaction: z.string(),
  item: z.object({ type: z.literal('message'), channel: z.string(), ts: timestamp }),
})
export const renameSchema = z.object({ channel: z.object({ id: z.string() }) })
export const joinSchema = z.object({ user: z.string(), channel: z.string() })
export const pressSchema = z.object({
  type: z.literal('block_actions'),
  user: z.object({ id: z.string() }),
  container: z.object({ channel_id: z.string(), thread_ts: z.string().optional() }),
  actions: z.array(z.object({ action_id: z.string() })).min(1),
})

/** Who we are in the workspace. */
export interface Ourselves {
  user: string
  bot: string | undefined
}

/** Other subtypes are notices of Slack's: somebody has joined, a topic was set. */
const spoken: ReadonlySet<string | undefined> = new Set([
  undefined,
  'file_share',
  'thread_broadcast',
  'me_message',
])

/** The person who said it; undefined: an app did, or nobody. */
export const speakerOf = ({ user, bot_id }: Pick<SlackMessage, 'user' | 'bot_id'>, us: Ourselves) =>
  bot_id === undefined && user !== us.user && user !== 'USLACKBOT' ? user : undefined

export const isSpoken = ({ subtype }: Pick<SlackMessage, 'subtype'>): boolean => spoken.has(subtype)

/** What begins a thread has the thread's id as well, once somebody has answered. */
export const threadOf = ({ ts, thread_ts }: Pick<SlackMessage, 'ts' | 'thread_ts'>): string | undefined =>
  thread_ts === ts ? undefined : thread_ts

export const mentions = (text: string, us: Ourselves): boolean => text.includes(`<@${us.user}`)

/** `<@U…>`, `<#C…|name>`, `<!here>`, `<https://…|label>`: https://docs.slack.dev/messaging/formatting-message-text */
const sequence = /<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>/g

/** whose names are looked up; anybody could write thousands */
const mostPeople = 50
export const peopleIn = (text: string): string[] =>
  [
    ...new Set([...text.matchAll(sequence)].flatMap(([, sign, id]) => (sign === '@' && id ? [id] : []))),
  ].slice(0, mostPeople)

/** What people read, without the mention of us. */
export function plainWords(text: string, us: Ourselves, names: ReadonlyMap<string, string>): string {
  const words = text.replace(sequence, (_, sign: string, target: string, label: string | undefined) => {
    if (sign === '@') return target === us.user ? '' : `@${names.get(target) ?? label ?? target}`
    if (sign === '#') return `#${label || target}`
    if (sign === '!') return label ?? `@${target}`
    const isSame = label === undefined || label === target || target.endsWith(`:${label}`)
    return isSame ? (label ?? target) : `${label} (${target})`
  })
  const read = words.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
  return mentions(text, us) ? read.trim() : read
}

/** What was passed on along with it. */
export const sharedIn = ({ attachments = [] }: Pick<SlackMessage, 'attachments'>): string[] =>
  attachments.flatMap(({ is_share, author_name, text }) =>
    is_share && text ? [`[passed on from ${author_name ?? 'somebody'}: ${text}]`] : [],
  )

/** A chat as the Web API describes it; undefined: there is none to speak of. */
export interface SlackChat {
  id?: string
  name?: string
  user?: string
  is_im?: boolean
  is_mpim?: boolean
}
export const knownChat = (id: string, chat: SlackChat, nameOfUser: string | undefined): KnownChat => ({
  jid: jidOf(id),
  name: chat.is_im ? (nameOfUser ?? id) : chat.is_mpim ? (chat.name ?? id) : `#${chat.name ?? id}`,
  isGroup: !chat.is_im,
})
