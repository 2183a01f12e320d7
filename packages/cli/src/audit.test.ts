import { join } from 'node:path'
import { expect, test } from 'vitest'
import { node, openCommand } from './testing.ts'

/** A data directory with three entries, and the daemon that wrote them, which may go on running. */
async function filled() {
  const { data, host, stop, run: audited, json } = await openCommand('audit')
  const { audit } = host.store
  const at = Date.UTC(2026, 0, 1, 12)
  const common = { group: 'family', actor: 'agent', gate: 'ask' } as const
  audit.append({ ...common, at, action: 'shell', summary: 'runs curl', outcome: 'held', requestId: 'r-1' })
  audit.append({
    ...common,
    at: at + 86_400_000,
    action: 'shell',
    summary: 'runs curl',
    taint: { corrupted: true, secret: true },
    decidedBy: 'person:Ann',
    reason: 'no \u001b[2J\u202e way',
    tookMs: 4200,
    outcome: 'denied',
    requestId: 'r-1',
    details: { host: 'example.org\u009b' },
  })
  audit.append({
    ...common,
    at: Date.now(),
    group: 'work',
    action: 'send_message',
    summary: 'says hi',
    outcome: 'allowed',
  })
  return { data, stop, audited, json }
}

test('the log is searched in every way, and nothing in it reaches the terminal raw', async () => {
  const { audited, json } = await filled()
  expect(await json()).toMatchObject([{ seq: 3 }, { seq: 2 }, { seq: 1 }])
  expect(await json('list', '--limit', '1')).toMatchObject([{ seq: 3 }])
  expect(await json('--group', 'family', '--outcome', 'held', '--gate', 'ask')).toMatchObject([{ seq: 1 }])
  expect(await json('--text', 'EXAMPLE', '--by', 'person:Ann', '--since', '2026-01-02')).toMatchObject([
    { seq: 2, took_ms: 4200, taint: { corrupted: true, secret: true } },
  ])
  expect(await json('--since', '2h')).toMatchObject([{ seq: 3 }])
  expect(await json('--until', '2026-01-02', '--request', 'r-1')).toMatchObject([{ seq: 1 }])
  expect(await json('--before', '2')).toMatchObject([{ seq: 1 }])
  expect((await audited('--group', 'nobody')).out).toBe('No matching entries.\n')
  const { out } = await audited('show', '2')
  expect(out).toContain('taint    corrupted secret\n')
  expect(out).toContain('reason   no \\u001b[2J\\u202e way\n')
  expect(out).toContain('"host": "example.org\\u009b"')
})

test('invalid usage is refused in a sentence', async () => {
  const { audited } = await filled()
  expect(await audited('verify', '--head', 'yesterday')).toMatchObject({ code: 64 })
  expect(await audited('--since', 'soon')).toMatchObject({ code: 64, err: expect.stringContaining('2h') })
  expect(await audited('--gate', 'open')).toMatchObject({ code: 64 })
  expect(await audited('show', '99')).toMatchObject({ code: 2, err: expect.stringContaining('not_found') })
  expect(await audited('show', '../status')).toMatchObject({ code: 2 })
  expect(await audited('--group', '../x')).toMatchObject({ code: 2 })
  expect(await audited('--text', 'x'.repeat(500))).toMatchObject({ code: 2 })
})

test.each([true, false])('the log is listed and verified, with a daemon: %s', async withDaemon => {
  const { stop, audited } = await filled()
  if (!withDaemon) await stop()
  expect((await audited()).out).toMatch(
    /^SEQ +AT +GROUP .*\n +3 .*\n +2 {2}2026-01-02 12:00:00 {2}family {2}agent /,
  )
  const head = (await audited('head')).out.trim()
  expect(head).toMatch(/^3:[0-9a-f]{64}$/)
  expect(await audited('verify', '--head', head)).toEqual({
    code: 0,
    out: `The audit log is intact: 3 entries, the last one is ${head}\nIt contains the given entry.\n`,
    err: '',
  })
  const other = `2:${'f'.repeat(64)}`
  expect(await audited('verify', '--head', other)).toEqual({
    code: 1,
    out: '',
    err: 'hatchway: Entry 2 has another hash than the one that was kept: the log was written anew.\n',
  })
  const report = await audited('verify', '--head', other, '--json')
  expect(report).toMatchObject({ code: 1, err: '' })
  expect(JSON.parse(report.out)).toMatchObject({ ok: false, problem: 'rewritten', seq: 2 })
})

test('a changed log is detected, with exit code 1 and the entry', async () => {
  const { data, stop, audited } = await filled()
  await stop()
  const script = `
    const { DatabaseSync } = require('node:sqlite')
    const database = new DatabaseSync(process.argv[1])
    const { sql } = database.prepare("SELECT sql FROM sqlite_schema WHERE name = 'audit_no_change'").get()
    database.exec("DROP TRIGGER audit_no_change; UPDATE audit SET outcome = 'allowed', at = 9e18 WHERE seq = 2")
    database.exec(sql)
    database.close()
  `
  expect(await node(['-e', script, join(data, 'state', 'hatchway.db')])).toMatchObject({ code: 0 })
  expect(await audited('verify')).toEqual({
    code: 1,
    out: '',
    err: 'hatchway: The audit log is broken at entry 2: it was changed, or does not follow from what stands before it.\n',
  })
  expect(await audited('show', '2')).toMatchObject({ code: 0, err: '' })
  expect(await audited()).toMatchObject({ code: 0, err: '' })
})
