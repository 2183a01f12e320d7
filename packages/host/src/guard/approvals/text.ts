import type { ApprovalRow, Shown } from '../../store/approvals.ts'
import type { Action, Taint } from '../types.ts'
import { visible } from './visible.ts'

const shownCharacters = 600
const shownFields = 20
const longestName = 60
const longestSummary = 300
const longestWhy = 500

export const cut = (text: string, length: number): string =>
  text.length <= length ? text : `${text.slice(0, length - 1).toWellFormed()}…`

/** Everything that is in it, a line for each field. */
export const wholeOf = (payload: Action['payload']): Shown => ({
  fields: Object.entries(payload)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ({ name: visible(name), text: textOf(value) })),
  more: 0,
})

const textOf = (value: unknown): string =>
  visible(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))

/** Some hundred characters of it. Short fields are shown whole, so that a long one cannot push them out of sight. */
export function shortOf(payload: Action['payload']): Shown {
  const { fields } = wholeOf(payload)
  const all = fields.reduce((sum, { name, text }) => sum + name.length + text.length, 0)
  const kept = fields.slice(0, shownFields)
  const lengths = new Map<(typeof kept)[number], number>()
  let left = shownCharacters
  const byLength = kept.toSorted((a, b) => a.text.length - b.text.length)
  for (const [i, field] of byLength.entries()) {
    const length = Math.min(field.text.length, Math.floor(left / (byLength.length - i)))
    lengths.set(field, length)
    left -= length
  }
  const shown = kept.map(field => ({
    name: field.name.slice(0, longestName).toWellFormed(),
    text: field.text.slice(0, lengths.get(field)).toWellFormed(),
  }))
  const characters = shown.reduce((sum, { name, text }) => sum + name.length + text.length, 0)
  return { fields: shown, more: all - characters }
}

export const shownAction = ({ name, summary, payload }: Action): ApprovalRow['action'] => ({
  name: cut(visible(name), longestName),
  summary: cut(visible(summary), longestSummary),
  payload: shortOf(payload),
})

/** Why a person is asked, with what the conversation has read, unless that is the reason anyway. */
export function reasonOf(why: string, { corrupted, secret }: Taint): string {
  const reason = cut(visible(why), longestWhy)
  const read = [
    ...(corrupted ? ['text that strangers may have written'] : []),
    ...(secret ? ['secrets'] : []),
  ]
  if (read.length === 0 || reason.includes('has read')) return reason
  return `${reason} The conversation has read ${read.join(' and ')}.`
}

/** What a person reads who gets text only. */
export function textOfApproval(
  { seq, action, why, code, expiresAt }: ApprovalRow,
  { deciders, timezone }: { deciders: string; timezone: string },
): string {
  const { fields, more } = action.payload
  const rest = more > 0 ? [`│ … and ${more} characters more: npx hatchway approvals show ${seq}`] : []
  return [
    `The agent wants to ${action.summary}`,
    ...fields.map(({ name, text }) => `│ ${name}: ${text}`),
    ...rest,
    '',
    `You are asked because: ${why}`,
    `Until ${instant(expiresAt, timezone)} ${deciders} can decide, by writing one of these lines. After that it is not done.`,
    `allow ${code}`,
    `deny ${code} (and why, if you like)`,
    `always ${code} (from now on this group may do exactly this without asking)`,
  ].join('\n')
}

const instant = (ms: number, timeZone: string): string =>
  new Intl.DateTimeFormat('en-GB', { timeZone, timeStyle: 'long' }).format(ms)

type Over = Pick<ApprovalRow, 'status' | 'decidedBy' | 'words' | 'rule'>

/** What has become of it, in a sentence. */
export function endingOf({ status, decidedBy, words, rule }: Over): string {
  const by = decidedBy ?? 'Somebody'
  switch (status) {
    case 'open':
      return 'Nobody has decided yet.'
    case 'allowed':
      return rule === null ? `${by} has allowed it.` : `${by} has allowed it, from now on without asking.`
    case 'denied':
      return words === null ? `${by} has said no.` : `${by} has said no: ${words}`
    case 'expired':
      return 'Nobody decided in time, so it was not done.'
    case 'withdrawn':
      return 'It is no longer needed.'
  }
}
