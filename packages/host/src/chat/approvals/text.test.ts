import { expect, test } from 'vitest'
import type { ApprovalRow } from '../../store/types.ts'
import { withoutInternal } from '../channels/internal.ts'
import { groupOf } from '../channels/testing.ts'
import { deciders, mayDecide, nameOf } from './approvers.ts'
import { knownChats } from './lookalikes.ts'
import { shortOf, shownAction, shownReason, textOfApproval, wholeOf } from './text.ts'

const chats = knownChats([])
const about = { deciders: 'the operator', timezone: 'Europe/Berlin' }
const row = (
  payload: Record<string, unknown>,
  summary = 'say something in the chat chat:b',
): ApprovalRow => ({
  seq: 17,
  group: 'family',
  jid: 'chat:family',
  messageId: 1,
  code: 'BCDFG-HJKLM',
  action: shownAction({ action: { group: 'family', name: 'send_message', summary, payload } }, chats, true),
  taint: { corrupted: true, secret: true },
  why: 'It goes out.',
  status: 'open',
  decidedBy: null,
  words: null,
  rule: null,
  createdAt: 0,
  expiresAt: Date.UTC(2026, 0, 15, 12, 5, 30),
  closedAt: null,
})

test('says what, with what, why, until when, and how to decide', () => {
  const payload = { jid: 'chat:b', text: 'Hello\nworld', more: { a: [1, '1'], b: {} } }
  expect(textOfApproval(row(payload), about)).toBe(
    [
      'The agent wants to say something in the chat chat:b',
      '│ jid: "chat:b"',
      '│ ⚠ no group has this chat',
      '│ text: "Hello\\nworld"',
      '│ more.a[0]: 1',
      '│ more.a[1]: "1"',
      '│ more.b: {}',
      '',
      'You are asked because: It goes out.',
      'Until 13:05:30 CET the operator can decide, by writing one of these lines. After that it is not done.',
      'allow BCDFG-HJKLM',
      'deny BCDFG-HJKLM (and why, if you like)',
      'always BCDFG-HJKLM (from now on this group may do exactly this without asking)',
    ].join('\n'),
  )
})

test('nothing in it is obeyed, hidden, or passes for a line of ours', () => {
  const sly =
    'a\u001b[2Jb\u202ec\u200bd\u2028allow X\u0000\u3164\u{e0041}\r\n\nYou are asked because: it is fine'
  const text = textOfApproval(row({ [sly]: sly }, sly), about)
  expect(text.split('\n')).toHaveLength(9)
  expect(text).not.toMatch(/(?!\n)\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}|\u3164/u)
  expect(text).toContain('a\\u001b[2Jb\\u202ec\\u200bd\\u2028allow X\\u0000\\u3164\\u{e0041}\\r\\n\\nYou are')
})

test('what would be taken out on the way to people is not', () => {
  for (const tag of ['<internal>', '</internal>', '<INTERNAL x="">', '<Internal']) {
    const text = textOfApproval(row({ a: `seen ${tag} unseen`, b: 'more' }), about)
    expect(withoutInternal(text)).toBe(text)
    expect(text).toContain(' unseen')
  }
})

/** The rows of a card, as somebody sees them who reads only what is there. */
const rows = (payload: Record<string, unknown>) =>
  textOfApproval(row(payload), about)
    .split('\n')
    .filter(line => line.startsWith('│'))

test('nothing in a value leaves its quotes, or pushes another row out of sight', () => {
  const spaces = `hello"${' '.repeat(400)}│ jid: "chat:mother" \\`
  expect(rows({ text: spaces })).toEqual(['│ text: "hello\\"␠×400\\u2502 jid: \\"chat:mother\\" \\\\"'])
  // What looks blank and is no space, what hides, and what reaches into the next line.
  const blank = `a\u00a0\u2003\u2800\u{1d159}\u3164\ufe0f\u00adb${'\u0301'.repeat(9)}`
  expect(rows({ text: blank })).toEqual([
    `│ text: "a\\u00a0\\u2003\\u2800\\u{1d159}\\u3164\\ufe0f\\u00adb\u0301\u0301\u0301${'\\u0301'.repeat(6)}"`,
    '│ ⚠ has 13 invisible characters',
  ])
  // A whole emoji is what it looks like.
  expect(rows({ text: '❤️👩‍🚀' })).toEqual(['│ text: "❤️👩‍🚀"'])
  // Names of fields are the agent's words, too.
  expect(rows({ 'text: "fine"\n│ jid': 'x', deep: { 'a b': '"' } })).toEqual([
    '│ "text: \\"fine\\"\\n\\u2502 jid": "x"',
    '│ deep."a b": "\\""',
  ])
})

test('two values that differ never look the same', () => {
  const values = [
    'a',
    'a ',
    'a  ',
    'a␠×2',
    'a\n',
    'a\\n',
    'a\u200b',
    'a\\u200b',
    '"a"',
    'a"',
    1,
    '1',
    true,
    'true',
    null,
    {},
  ]
  expect(new Set(values.map(value => rows({ value })[0])).size).toBe(values.length)
})

test('letters of another alphabet that pass for Latin ones are pointed out', () => {
  const note = (text: string) => rows({ text })[1]
  expect(note('pay to pаypal')).toBe('│ ⚠ "pаypal" mixes Latin and Cyrillic letters')
  expect(note('pay to сосо')).toBe('│ ⚠ "сосо" looks like "coco" but is written with other characters')
  expect(note('pay to ｆａｍｉｌｙ')).toContain('looks like "family"')
  expect(note('pay to שלום')).toBe('│ ⚠ parts of it read from right to left')
  for (const honest of ['Straße, café', 'привет, а с тобой о чём?', 'γειά σου'])
    expect(note(honest)).toBeUndefined()
})

test('an address that only looks like a known one is pointed out', () => {
  const known = knownChats([groupOf('family', { jid: 'chat:family' }), groupOf('shop', { jid: 'chat:shop' })])
  const note = (jid: string) => wholeOf({ jid }, known).fields[0]?.note
  expect(note('chat:family')).toBeUndefined()
  for (const jid of [
    'chat:famіly',
    'chat:farnily',
    'chat:FAMILY',
    'chat:fami1y',
    'ｃhat:family',
    'chat:famíly',
  ]) {
    expect(note(jid)).toContain(
      'looks like "chat:family" (the group family), but is another chat; no group has this chat',
    )
  }
  expect(note('chat:fame')).toBe('no group has this chat')
  // Only where it is an address.
  expect(wholeOf({ text: 'chat:fami1y' }, known).fields[0]?.note).toBeUndefined()
})

test('a long field is cut, says by how much, and does not push others out of sight', () => {
  const payload = { padding: 'x'.repeat(100_000), to: 'thief@example.org', why: 'y'.repeat(50_000) }
  const { fields, more } = shortOf(payload, chats)
  expect(fields.map(({ name }) => name)).toEqual(['padding', 'to', 'why'])
  expect(fields[1]).toEqual({ name: 'to', text: '"thief@example.org"' })
  const [padding, , why] = fields.map(({ text }) => /^"([xy]+)"…$/.exec(text)?.[1]?.length ?? 0)
  expect(padding).toBeGreaterThan(100)
  expect(more).toBe(150_000 - (padding ?? 0) - (why ?? 0))
  expect(textOfApproval(row(payload), about)).toContain(
    `│ … and ${more} characters more: npx hatchway approvals show 17`,
  )
  // What was not shown whole is not offered for ever, nor is what has nothing in it.
  expect(textOfApproval(row(payload), about)).not.toContain('always')
  expect(textOfApproval(row({}), about)).not.toContain('always')
  expect(wholeOf(payload, chats).fields[0]?.text).toBe(`"${payload.padding}"`)
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`field ${i}`, `${i}`]))
  expect(shortOf(many, chats).fields).toHaveLength(20)
  expect(shortOf(many, chats).more).toBeGreaterThan(4000)
  // A character is never cut in two, nor is an escape.
  expect(shortOf({ a: '🙂'.repeat(1000) }, chats).fields[0]?.text.isWellFormed()).toBe(true)
  expect(shortOf({ a: '\u200b'.repeat(1000) }, chats).fields[0]?.text).toMatch(/^"(?:\\u200b)+"…$/)
})

test('who may decide is named, and only the operator is the operator', () => {
  const web = { channel: 'web', sender: 'operator', senderName: 'Operator' }
  const ann = { channel: 'webhook', sender: 'ann', senderName: 'Operator' }
  const liar = { channel: 'webhook', sender: 'operator', senderName: 'Operator' }
  const closed = { groups: { Family: { approvers: ['ann', 'operator'] }, none: { approvers: [] } } }
  expect([web, ann, liar].map(person => mayDecide({ groups: {} }, 'family', person))).toEqual([
    true,
    false,
    false,
  ])
  expect([web, ann, liar].map(person => mayDecide(closed, 'family', person))).toEqual([true, true, false])
  expect([web, ann, liar].map(person => mayDecide(closed, 'none', person))).toEqual([false, false, false])
  const onlyAnn = { groups: { family: { approvers: ['ann'] } } }
  expect([web, ann, liar].map(person => mayDecide(onlyAnn, 'family', person))).toEqual([false, true, false])
  expect(deciders({ groups: {} }, 'family')).toBe('the operator')
  expect(deciders(closed, 'family')).toBe('ann or the operator')
  expect(deciders(closed, 'none')).toBe('somebody at the host’s command line')
  expect([web, ann].map(nameOf)).toEqual(['Operator', 'Operator (ann)'])
})

test('a key cannot pass for a path: no field seems to be in another', () => {
  const names = (payload: Record<string, unknown>) => wholeOf(payload, chats).fields.map(({ name }) => name)
  expect(names({ mail: { to: 1 } })).toEqual(['mail.to'])
  expect(names({ 'mail.to': 1 })).toEqual(['"mail.to"'])
  expect(names({ to: ['a'] })).toEqual(['to[0]'])
  expect(names({ 'to[0]': 'a' })).toEqual(['"to[0]"'])
  expect(names({ mail: { 'x".y': 1 } })).toEqual(['mail."x\\".y"'])
})

test('the reason stands on its line, whatever an inspector was made to say', () => {
  const forged = `The inspector is not sure: fine.${' \u00a0\u2003'.repeat(50)}Until noon it is safe.`
  expect(shownReason(forged)).toBe('The inspector is not sure: fine. Until noon it is safe.')
  const { summary } = row({}, `say${'\u3000'.repeat(60)}nothing`).action
  expect(summary).toBe('say nothing')
})
