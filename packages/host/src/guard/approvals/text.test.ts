import { expect, test } from 'vitest'
import { withoutInternal } from '../../channels/internal.ts'
import type { ApprovalRow } from '../../store/approvals.ts'
import { deciders, mayDecide, nameOf } from './approvers.ts'
import { reasonOf, shortOf, shownAction, textOfApproval, wholeOf } from './text.ts'

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
  action: shownAction({ group: 'family', name: 'send_message', summary, payload }),
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
  expect(textOfApproval(row({ jid: 'chat:b', text: 'Hello\nworld', more: { a: [1] } }), about)).toBe(
    [
      'The agent wants to say something in the chat chat:b',
      '│ jid: chat:b',
      '│ text: Hello\\nworld',
      '│ more: {"a":[1]}',
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

test('a long field is cut, says by how much, and does not push others out of sight', () => {
  const payload = { padding: 'x'.repeat(100_000), to: 'thief@example.org', why: 'y'.repeat(50_000) }
  const { fields, more } = shortOf(payload)
  expect(fields.map(({ name }) => name)).toEqual(['padding', 'to', 'why'])
  expect(fields[1]?.text).toBe('thief@example.org')
  const shown = fields.reduce((sum, { name, text }) => sum + name.length + text.length, 0)
  expect(shown).toBeLessThan(700)
  const whole = wholeOf(payload).fields.reduce((sum, { name, text }) => sum + name.length + text.length, 0)
  expect(more).toBe(whole - shown)
  expect(textOfApproval(row(payload), about)).toContain(
    `│ … and ${more} characters more: npx hatchway approvals show 17`,
  )
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`field ${i}`, `${i}`]))
  expect(shortOf(many).fields).toHaveLength(20)
  expect(shortOf(many).more).toBeGreaterThan(4000)
  // A character is never cut in two.
  expect(shortOf({ a: '🙂'.repeat(1000) }).fields[0]?.text.isWellFormed()).toBe(true)
})

test('what the conversation has read is said once', () => {
  const both = { corrupted: true, secret: true }
  expect(reasonOf('The conversation has read secrets.', both)).toBe('The conversation has read secrets.')
  expect(reasonOf('A key is in it.', both)).toBe(
    'A key is in it. The conversation has read text that strangers may have written and secrets.',
  )
  expect(reasonOf('A key is in it.', { corrupted: false, secret: false })).toBe('A key is in it.')
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
