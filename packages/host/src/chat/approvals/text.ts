import type { Action } from '../../base/taint.ts'
import { named, quoted, quotedStart, visible } from '../../base/visible-text.ts'
import type { Held } from '../../guard/guard.ts'
import type { ApprovalRow, Shown } from '../../store/types.ts'
import { addressNotes, type KnownChats, textNotes } from './lookalikes.ts'

const shownCharacters = 600
const shownFields = 20
const longestName = 60
const longestSummary = 300
const longestWhy = 500

export const cut = (text: string, length: number): string =>
  text.length <= length ? text : `${text.slice(0, length - 1).toWellFormed()}…`

/** "Always" binds what was shown. */
export const notAllShown = ({ seq }: Pick<ApprovalRow, 'seq'>): string =>
  `Not all of it was shown here. Look at it with approvals show ${seq}, or in the console.`

interface Leaf {
  name: string
  value: unknown
}

/** A key with dots or brackets in it cannot pass for a path. */
const keyFor = (key: string): string => (/^[\w-]+$/.test(key) ? key : quoted(key))

/** Every value by itself, under its path: nothing that is nested can pass for a field of its own. */
function* leavesOf(value: unknown, name: string): Generator<Leaf> {
  const inner: [string, unknown][] = Array.isArray(value)
    ? value.map((item, i) => [`${name}[${i}]`, item])
    : typeof value === 'object' && value !== null
      ? Object.entries(value).map(([key, item]) => [
          name === '' ? keyFor(key) : `${name}.${keyFor(key)}`,
          item,
        ])
      : []
  if (inner.length === 0 && name !== '') yield { name, value }
  for (const [path, item] of inner) if (item !== undefined) yield* leavesOf(item, path)
}

const notesOn = (text: string, known: KnownChats | undefined): string[] => [
  ...(known ? addressNotes(text, known) : []),
  ...(known?.has(text) === false ? ['no group has this chat'] : []),
  ...textNotes(text),
]

const nameFor = (name: string): string =>
  name.length <= longestName ? name : quotedStart(name, longestName).text

function shownLeaf({ name, value }: Leaf, length: number, chats: KnownChats): Shown['fields'][number] {
  const text = typeof value === 'string' ? value : undefined
  const { text: shown, more } =
    text === undefined ? { text: JSON.stringify(value) ?? '', more: 0 } : quotedStart(text, length)
  const known = /(?:^|\.)(?:jid|chat)$/.test(name) ? chats : undefined
  const notes = text === undefined ? [] : notesOn(text, known)
  return {
    name: nameFor(name),
    text: shown,
    ...(more > 0 ? { more } : {}),
    ...(notes.length > 0 ? { note: notes.join('; ') } : {}),
  }
}

/** Everything that is in it, field by field. */
export const wholeOf = (payload: Action['payload'], chats: KnownChats): Shown => ({
  fields: [...leavesOf(payload, '')].map(leaf => shownLeaf(leaf, Number.POSITIVE_INFINITY, chats)),
  more: 0,
})

/** Some hundred characters of it. Short fields are shown whole, so that a long one cannot push them out of sight. */
export function shortOf(payload: Action['payload'], chats: KnownChats): Shown {
  const leaves = [...leavesOf(payload, '')]
  const kept = leaves.slice(0, shownFields)
  const lengths = new Map<Leaf, number>()
  let left = shownCharacters
  const byLength = kept.toSorted((a, b) => lengthOf(a) - lengthOf(b))
  for (const [i, leaf] of byLength.entries()) {
    const length = Math.min(lengthOf(leaf), Math.floor(left / (byLength.length - i)))
    lengths.set(leaf, length)
    left -= length
  }
  const fields = kept.map(leaf => shownLeaf(leaf, lengths.get(leaf) ?? 0, chats))
  const cut = fields.reduce((sum, { more = 0 }) => sum + more, 0)
  const rest = leaves.slice(shownFields).reduce((sum, leaf) => sum + leaf.name.length + lengthOf(leaf), 0)
  return { fields, more: cut + rest }
}

/** As it is shown, escapes and all, as far as that matters here. */
const lengthOf = ({ value }: Leaf): number =>
  typeof value !== 'string' ? 0 : value.length > shownCharacters ? value.length : quoted(value).length

export const shownAction = (
  { action: { name, summary, payload }, standing }: Pick<Held, 'action' | 'standing'>,
  chats: KnownChats,
  mayAlways: boolean,
): ApprovalRow['action'] => {
  const shown = shortOf(payload, chats)
  return {
    name: cut(visible(name), longestName),
    summary: cut(visible(summary).replace(/\s{2,}/g, ' '), longestSummary),
    payload: shown,
    always: mayAlways && shown.fields.length > 0,
    standing: mayAlways && standing !== undefined,
  }
}

/** An inspector's words may have been put into its mouth: they cannot fill a line and seem to begin the next. */
export const shownReason = (why: string): string => cut(visible(why).replace(/\s{2,}/g, ' '), longestWhy)

/** What a person reads who gets text only. */
export function textOfApproval(
  { seq, action, why, code, expiresAt }: ApprovalRow,
  { deciders, timezone }: { deciders: string; timezone: string },
): string {
  const { fields, more } = action.payload
  const rest = more > 0 ? [`│ … and ${more} characters more: npx hatchway approvals show ${seq}`] : []
  return [
    `The agent wants to ${action.summary}`,
    ...fields.flatMap(({ name, text, note }) => [
      `│ ${name}: ${text}`,
      ...(note === undefined ? [] : [`│ ⚠ ${note}`]),
    ]),
    ...rest,
    '',
    `You are asked because: ${why}`,
    `Until ${instant(expiresAt, timezone)} ${deciders} can decide, by writing one of these lines. After that it is not done.`,
    `allow ${code}`,
    `deny ${code} (and why, if you like)`,
    // What is not shown whole is not allowed for ever.
    ...(action.always && more === 0
      ? [`always ${code} (from now on this group may do exactly this without asking)`]
      : []),
    ...(action.standing
      ? [
          `always tool ${code} (from now on this group may use ${named(action.name)} without asking, whatever it is called with)`,
        ]
      : []),
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
