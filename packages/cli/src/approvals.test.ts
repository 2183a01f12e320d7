import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createNames, post } from '@hatchway/spool'
import { expect, test, vi } from 'vitest'
import { openCommand } from './testing.ts'

const patience = { timeout: 30_000 }
const freshName = createNames()

/** A daemon whose main group has read too much to be believed without a person. */
async function open() {
  const {
    data,
    host: { store, addGroup },
    stop,
    run: approvals,
    json,
  } = await openCommand('approvals', { groups: { main: { approvers: ['ann'] } } })
  await addGroup({ folder: 'main', jid: 'chat:main', name: 'Main', main: true, dialect: 'hatchway' })
  store.transaction(transaction =>
    transaction.addTaint('main', 'session', { corrupted: true, secret: true }, 'a test', Date.now()),
  )
  /** The number of what the agent wants, once somebody is asked about it. */
  const want = async (id: string, text: string): Promise<string> => {
    const before = store.approvals.open().length
    const payload = { jid: 'chat:other', text }
    post(
      join(data, 'ipc', 'main', 'tasks'),
      JSON.stringify({ version: 1, id, type: 'send_message', payload }),
      { name: freshName() },
    )
    await vi.waitFor(() => expect(store.approvals.open()).toHaveLength(before + 1), patience)
    return String(store.approvals.open().at(-1)?.seq)
  }
  const answer = (id: string) =>
    vi.waitFor(
      () => JSON.parse(readFileSync(join(data, 'ipc', 'main', 'responses', `${id}.json`), 'utf8')),
      patience,
    )
  return { store, stop, want, answer, approvals, json }
}

test('approvals are listed, shown in full, and decided by id or code', async () => {
  const { store, want, answer, approvals, json } = await open()
  expect((await approvals()).out).toBe('No approvals waiting.\n')
  const long = `hello \u001b[2J${'x'.repeat(2000)} the end`
  const first = await want('r-1', long)
  const second = await want('r-2', 'two')
  expect(await json()).toMatchObject([
    { id: first, group: 'main', status: 'open' },
    { id: second, group: 'main', status: 'open' },
  ])
  const listed = await approvals('list')
  expect(listed.out).toContain('say something in the chat chat:other')
  const shown = await approvals('show', first)
  expect(shown.out).toContain(
    `│ text: "hello \\u001b[2J${'x'.repeat(2000)} the end"\n│ ⚠ has 1 invisible character\n`,
  )
  // Escapes on a terminal are shown, and no list of approvers binds whoever is at the host.
  expect(shown.out).not.toContain('\u001b')
  expect(await approvals('allow', first)).toEqual({
    code: 0,
    out: 'Allowed by Operator. (main: say something in the chat chat:other)\n',
    err: '',
  })
  expect(await answer('r-1')).toMatchObject({ ok: true })
  const code = store.approvals.approval(Number(second))?.code ?? ''
  expect((await approvals('deny', code.toLowerCase(), 'not', 'today')).out).toBe(
    'Denied by Operator: not today (main: say something in the chat chat:other)\n',
  )
  expect(await answer('r-2')).toMatchObject({ error: { message: 'Operator said no. not today' } })
  const late = await approvals('allow', second)
  expect(late).toEqual({
    code: 2,
    out: '',
    err: 'hatchway: Operator has said no: not today (wrong_state)\n',
  })
  expect((await approvals('allow', 'BCDFG-HJKLM')).code).toBe(2)
  expect((await approvals('show', first)).out).toContain('more characters, which were not kept')
  expect(await json('--all', '--limit', '1')).toMatchObject([{ id: second, status: 'denied' }])
  expect((await approvals('allow')).code).toBe(64)
})

test('rules are listed and revoked, with or without a daemon', async () => {
  const { want, answer, approvals, json, stop, store } = await open()
  const first = await want('r-1', 'good morning')
  expect((await approvals('allow', first, '--always')).out).toContain('Always allowed by Operator.')
  expect(await answer('r-1')).toMatchObject({ ok: true })
  expect(await json('rules')).toMatchObject([
    { id: 1, group: 'main', name: 'send_message', made_by: 'Operator' },
  ])
  expect((await approvals('rules', '--group', 'other')).out).toBe('No actions are always allowed.\n')
  const waiting = await want('r-2', 'good evening')
  expect(store.approvals.open()).toHaveLength(1)
  await stop()
  expect(await json()).toMatchObject([{ id: waiting }])
  expect(await approvals('allow', waiting)).toMatchObject({ code: 2 })
  expect((await approvals('revoke', '1')).out).toBe(
    'Rule 1 is removed: main needs approval again to say something in the chat chat:other.\n',
  )
  expect(await approvals('revoke', '1')).toMatchObject({ code: 2 })
  expect(await json('rules')).toEqual([])
})
