import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { searchAudit } from '../guard/audit/search.ts'
import { verifyAudit } from './audit-verify.ts'
import { openStore } from './sqlite.ts'
import type { AuditEntry, Store, Transaction } from './types.ts'

const hasPython = spawnSync('python3', ['--version']).status === 0
const storeModule = join(import.meta.dirname, 'sqlite.ts')

function databasePath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-audit-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return join(folder, 'hatchway.db')
}
const openOnce = (path: string) => openStore({ path, durability: 'process', prepare: false })
function open(path = databasePath()): Store {
  const store = openOnce(path)
  onTestFinished(() => store.close())
  return store
}
/** Opens it for a moment. */
function during<T>(path: string, work: (store: Store) => T): T {
  const store = openOnce(path)
  try {
    return work(store)
  } finally {
    store.close()
  }
}
const write = (store: Store, work: (transaction: Transaction) => void) => store.transaction(work)

const entry = (n: number, more: Partial<AuditEntry> = {}): AuditEntry => ({
  at: 1_769_900_000_000 + n,
  group: 'family',
  actor: 'agent',
  action: 'send_message',
  summary: `message ${n}`,
  taint: { corrupted: n % 2 === 0, secret: false },
  gate: 'allow',
  outcome: 'allowed',
  ...more,
})
const fill = (store: Store, count: number) =>
  write(store, transaction => {
    for (let n = 1; n <= count; n++) transaction.audit(entry(n))
  })
const seqs = async (store: Store) =>
  (await searchAudit(store.audit, {}, { limit: 100 })).map(({ seq }) => seq)

/** Another tool on the same file, while nobody else has it. */
function tamper(path: string, sql: string): void {
  const database = new DatabaseSync(path)
  try {
    database.exec(sql)
  } finally {
    database.close()
  }
}
/** Lets the triggers out of the way, and puts them back as they were. */
const behindTheTriggers = (path: string, sql: string) => {
  const database = new DatabaseSync(path)
  try {
    const triggers = database
      .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'audit%'")
      .all()
    for (const { name } of triggers) database.exec(`DROP TRIGGER ${name}`)
    database.exec(sql)
    for (const { sql: text } of triggers) database.exec(String(text))
  } finally {
    database.close()
  }
}

describe('an entry', () => {
  const circle: Record<string, unknown> = {}
  circle.again = circle
  let deep: Record<string, unknown> = {}
  for (let i = 0; i < 50_000; i++) deep = { deep }
  const hostile: AuditEntry[] = [
    entry(1, {
      summary: 'nul \0 \ud800 lone \udc00 \u2028 \u202e \x1b]0;x\x07 \x7f "\\ 😀',
      details: { '\0': '\ud800\0' },
    }),
    entry(2, { summary: '😀'.repeat(100_000), action: 'x'.repeat(1000), reason: '\n'.repeat(9000) }),
    entry(3, { details: { text: 'é'.repeat(200_000) } }),
    entry(4, { details: circle }),
    entry(5, { details: { big: 1n }, tookMs: Number.NaN, at: -1.5 }),
    entry(6, {
      tookMs: Number.POSITIVE_INFINITY,
      details: JSON.parse('{"__proto__":{"x":1},"toJSON":"y"}'),
    }),
    entry(7, { details: deep }),
    entry(8, { details: { text: '"'.repeat(9000) } }),
    entry(9, { details: { text: '語'.repeat(9000) } }),
    entry(10, { actor: 'person:operator', requestId: "'; DROP TABLE audit; --", group: '' }),
  ]

  test('is read back as it was written, and the chain holds over transactions and restarts', async () => {
    const path = databasePath()
    const store = openOnce(path)
    const whole = entry(1, {
      actor: 'person:Ann',
      taint: { corrupted: true, secret: true },
      gate: 'ask',
      verdict: 'unsure',
      decidedBy: 'inspector:some-model',
      reason: 'two words',
      tookMs: 12.6,
      outcome: 'denied',
      requestId: 'r-1',
      details: { jid: 'chat:1', parts: [1, null, 'x'] },
    })
    expect(store.audit.append(whole)).toBe(1)
    await write(store, transaction => {
      expect(transaction.audit(entry(2, { group: null, taint: null, gate: undefined }))).toBe(2)
      expect(transaction.audit(entry(3))).toBe(3)
    })
    expect(store.audit.entry(1)).toEqual({
      ...whole,
      seq: 1,
      tookMs: 13,
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
    expect(store.audit.entry(2)).toMatchObject({ group: null, taint: null, gate: null, details: null })
    expect(store.audit.entry(3)).toMatchObject({ taint: { corrupted: false, secret: false } })
    expect(store.audit.entry(4)).toBeUndefined()
    const head = store.audit.head()
    store.close()

    const again = open(path)
    expect(again.audit.head()).toEqual(head)
    expect(again.audit.append(entry(4))).toBe(4)
    expect(await verifyAudit(again.audit, head)).toMatchObject({ ok: true, entries: 4, head: { seq: 4 } })
  })

  test('goes with the transaction it was part of, and the next one takes its place', async () => {
    const store = open()
    fill(store, 2)
    const before = store.audit.head()
    expect(() =>
      write(store, transaction => {
        transaction.audit(entry(3))
        transaction.audit(entry(4))
        throw new Error('stumbled')
      }),
    ).toThrow('stumbled')
    expect(store.audit.head()).toEqual(before)
    expect(store.audit.append(entry(5))).toBe(3)
    expect(store.audit.entry(3)).toMatchObject({ summary: 'message 5' })
    expect(await verifyAudit(store.audit)).toMatchObject({ ok: true, entries: 3 })
  })

  test('of hostile text is kept, bounded, and part of the chain', async () => {
    const store = open()
    await write(store, transaction => {
      for (const one of hostile) transaction.audit(one)
    })
    expect(await verifyAudit(store.audit)).toMatchObject({ ok: true, entries: hostile.length })
    expect(store.audit.entry(1)).toMatchObject({
      summary: 'nul \ufffd \ufffd lone \ufffd \u2028 \u202e \x1b]0;x\x07 \x7f "\\ 😀',
      details: { '\0': '\ud800\0' },
    })
    const [long, huge] = [store.audit.entry(2), store.audit.entry(3)]
    expect(long?.summary).toHaveLength(1000)
    expect(long?.summary.isWellFormed()).toBe(true)
    expect(long?.action).toBe(`${'x'.repeat(199)}…`)
    expect(long?.reason).toHaveLength(2000)
    expect(huge?.details).toEqual({ cut: 400_011, begins: expect.stringMatching(/^\{"text":"é+$/) })
    for (const { details } of await searchAudit(store.audit, {}, { limit: 100 })) {
      expect(Buffer.byteLength(JSON.stringify(details))).toBeLessThanOrEqual(8192)
    }
    expect(store.audit.entry(4)?.details).toEqual({ cut: 'not JSON' })
    expect(store.audit.entry(7)?.details).toEqual({ cut: 'not JSON' })
    expect(store.audit.entry(5)).toMatchObject({ at: 0, tookMs: 0, details: { cut: 'not JSON' } })
  })

  test.skipIf(!hasPython)('can be checked by a stranger, as the documentation says', () => {
    const path = databasePath()
    const { seq, hash } = during(path, store => {
      for (const one of hostile) store.audit.append(one)
      return store.audit.head()
    })
    const page = readFileSync(join(import.meta.dirname, '../../../../docs/audit.md'), 'utf8')
    const [, script = ''] = /```python\n(.*?)```/s.exec(page) ?? []
    const check = () => execFileSync('python3', ['-c', script, path], { encoding: 'utf8', stdio: 'pipe' })
    expect(check()).toBe(`whole: ${seq}:${hash}\n`)
    behindTheTriggers(path, "UPDATE audit SET outcome = 'denied' WHERE seq = 4")
    expect(check).toThrow('broken at 4')
  })
})

describe('another tool', () => {
  const filled = (count = 20): { path: string; head: { seq: number; hash: string } } => {
    const path = databasePath()
    const head = during(path, store => {
      fill(store, count)
      return store.audit.head()
    })
    return { path, head }
  }

  test.each([
    "UPDATE audit SET summary = 'x' WHERE seq = 5",
    'UPDATE audit SET seq = 50 WHERE seq = 20',
    'DELETE FROM audit WHERE seq = 20',
    'DELETE FROM audit',
    `REPLACE INTO audit SELECT * FROM audit WHERE seq = 5`,
    `INSERT INTO audit (seq, at, actor, action, summary, outcome, hash) VALUES (0, 1, 'x', 'x', 'x', 'x', 'x')`,
    `INSERT INTO audit (seq, at, actor, action, summary, outcome, hash) VALUES (22, 1, 'x', 'x', 'x', 'x', 'x')`,
    `INSERT INTO audit (at, actor, action, summary, outcome, hash) VALUES (1, 'x', 'x', 'x', 'x', 'x')`,
    "UPDATE audit_anchor SET seq = 20, hash = 'x'",
    'UPDATE audit_anchor SET seq = -1',
    'DELETE FROM audit_anchor',
    "INSERT INTO audit_anchor VALUES (20, 'x', 1)",
  ])('is stopped by the database: %s', async sql => {
    const { path, head } = filled()
    expect(() => tamper(path, sql)).toThrow(/audit/)
    expect(await verifyAudit(open(path).audit, head)).toMatchObject({ ok: true, entries: 20 })
  })

  test.each([
    ['changes an entry', "UPDATE audit SET summary = 'nothing' WHERE seq = 7", 'changed', 7],
    ['changes the first', 'UPDATE audit SET at = at + 1 WHERE seq = 1', 'changed', 1],
    ['changes the last', "UPDATE audit SET outcome = 'denied' WHERE seq = 20", 'changed', 20],
    ['takes a word away', 'UPDATE audit SET gate = NULL WHERE seq = 3', 'changed', 3],
    [
      'moves a word to the next field',
      "UPDATE audit SET actor = 'agentsend', action = '_message' WHERE seq = 9",
      'changed',
      9,
    ],
    [
      'writes a number nobody can have',
      'UPDATE audit SET at = 9223372036854775807 WHERE seq = 4',
      'changed',
      4,
    ],
    ['removes one', 'DELETE FROM audit WHERE seq = 8', 'missing', 8],
    ['removes the first ones', 'DELETE FROM audit WHERE seq <= 3', 'missing', 1],
    [
      'closes the gap',
      'DELETE FROM audit WHERE seq = 8; UPDATE audit SET seq = seq - 1 WHERE seq > 8',
      'changed',
      8,
    ],
    [
      'swaps two',
      'UPDATE audit SET seq = -1 WHERE seq = 5; UPDATE audit SET seq = 5 WHERE seq = 6; UPDATE audit SET seq = 6 WHERE seq = -1',
      'changed',
      5,
    ],
    [
      'puts one in between',
      `UPDATE audit SET seq = -seq WHERE seq >= 10; UPDATE audit SET seq = 1 - seq WHERE seq < 0;
       INSERT INTO audit SELECT 10, at, group_folder, actor, action, 'forged', taint, gate, verdict, decided_by, reason,
       took_ms, outcome, request_id, details, hash FROM audit WHERE seq = 11`,
      'changed',
      10,
    ],
    [
      'puts one before all others',
      "INSERT INTO audit (seq, at, actor, action, summary, outcome, hash) VALUES (-3, 1, 'x', 'x', 'x', 'x', 'x')",
      'inserted',
      -3,
    ],
    [
      'adds one far away',
      "INSERT INTO audit (seq, at, actor, action, summary, outcome, hash) VALUES (900, 1, 'x', 'x', 'x', 'x', 'x')",
      'missing',
      21,
    ],
    [
      'adds one of its own at the end',
      "INSERT INTO audit (seq, at, actor, action, summary, outcome, hash) VALUES (21, 1, 'x', 'x', 'x', 'x', 'x')",
      'changed',
      21,
    ],
    ['changes where the chain begins', `UPDATE audit_anchor SET hash = '${'1'.repeat(64)}'`, 'changed', 1],
    ['pretends that some were removed', 'UPDATE audit_anchor SET seq = 5', 'inserted', 1],
    ['changes what only looks like JSON', "UPDATE audit SET details = '{' WHERE seq = 6", 'changed', 6],
  ] as const)(
    'that %s is found out, and the log stays readable and goes on',
    async (_, sql, problem, seq) => {
      const { path } = filled()
      behindTheTriggers(path, sql)
      const store = open(path)
      expect(await verifyAudit(store.audit)).toMatchObject({
        ok: false,
        problem,
        seq,
        message: expect.any(String),
      })
      const before = (await seqs(store)).length
      const added = store.audit.append(entry(99))
      expect(store.audit.entry(added)).toMatchObject({ summary: 'message 99' })
      expect(await seqs(store)).toHaveLength(before + 1)
      expect(await verifyAudit(store.audit)).toMatchObject({ ok: false, problem, seq })
    },
  )

  test('that takes the triggers away is found out', async () => {
    const { path } = filled()
    tamper(path, 'DROP TRIGGER audit_no_change')
    expect(await verifyAudit(open(path).audit)).toMatchObject({
      ok: false,
      problem: 'unguarded',
      message: expect.stringContaining('audit_no_change'),
    })
  })

  test('that cuts off the end is found out by a head that was kept elsewhere', async () => {
    const { path, head } = filled()
    behindTheTriggers(path, 'DELETE FROM audit WHERE seq > 15')
    const store = open(path)
    expect(await verifyAudit(store.audit)).toMatchObject({ ok: true, entries: 15 })
    expect(await verifyAudit(store.audit, head)).toMatchObject({ ok: false, problem: 'cut_off', seq: 20 })
    // Growing again does not help.
    fill(store, 10)
    expect(await verifyAudit(store.audit)).toMatchObject({ ok: true, entries: 25 })
    expect(await verifyAudit(store.audit, head)).toMatchObject({ ok: false, problem: 'rewritten', seq: 20 })
  })
})

describe('retention', () => {
  test('keeps the newest, and what is kept can be verified', async () => {
    const store = open()
    fill(store, 20)
    const [old, edge, head] = [store.audit.entry(5), store.audit.entry(13), store.audit.head()]
    expect(store.audit.prune({ entries: 7 }, 1_800_000_000_000)).toBe(false)
    expect(await seqs(store)).toEqual([20, 19, 18, 17, 16, 15, 14])
    expect(store.audit.anchor()).toEqual({ seq: 13, hash: edge?.hash, at: 1_800_000_000_000 })
    if (!old || !edge) throw new Error('there were twenty')
    expect(await verifyAudit(store.audit, head)).toMatchObject({ ok: true, entries: 7 })
    expect(await verifyAudit(store.audit, edge)).toMatchObject({ ok: true })
    expect(await verifyAudit(store.audit, { ...edge, hash: old.hash })).toMatchObject({
      problem: 'rewritten',
    })
    expect(await verifyAudit(store.audit, old)).toMatchObject({ ok: false, problem: 'removed', seq: 5 })
    expect(store.audit.append(entry(21))).toBe(21)
    expect(store.audit.prune({ entries: 7 }, 1_800_000_000_001)).toBe(false)
    expect(await verifyAudit(store.audit)).toMatchObject({ ok: true, entries: 7, anchor: { seq: 14 } })
    expect(store.audit.prune({ entries: 7 }, 1_800_000_000_002)).toBe(false)
    expect(store.audit.anchor()).toMatchObject({ at: 1_800_000_000_001 })
  })

  test('goes by age, up to the first that is young enough, and may leave nothing', async () => {
    const path = databasePath()
    const store = openOnce(path)
    const day = 86_400_000
    // The clock was wrong for a moment.
    for (const days of [1, 2, 9, 3, 4]) store.audit.append(entry(0, { at: days * day }))
    store.audit.prune({ entries: 100, days: 5 }, 10 * day)
    expect(await seqs(store)).toEqual([5, 4, 3])
    store.audit.prune({ entries: 100, days: 5 }, 20 * day)
    expect(await seqs(store)).toEqual([])
    const anchor = store.audit.anchor()
    expect(store.audit.head()).toEqual({ seq: 5, hash: anchor.hash })
    store.close()
    const again = open(path)
    expect(await verifyAudit(again.audit)).toMatchObject({ ok: true, entries: 0, head: { seq: 5 } })
    expect(again.audit.append(entry(6))).toBe(6)
    expect(await verifyAudit(again.audit, anchor)).toMatchObject({ ok: true, entries: 1 })
  })

  test('takes many in slices', async () => {
    const store = open()
    fill(store, 2500)
    let rounds = 1
    while (store.audit.prune({ entries: 10 }, 0)) rounds++
    expect(rounds).toBe(3)
    expect(await verifyAudit(store.audit)).toMatchObject({ ok: true, entries: 10, anchor: { seq: 2490 } })
  })

  test('removes a broken place too, and says in the log that it was there', async () => {
    const path = databasePath()
    during(path, store => fill(store, 10))
    behindTheTriggers(
      path,
      'UPDATE audit SET at = 9223372036854775807 WHERE seq = 4; DELETE FROM audit WHERE seq = 6',
    )
    const store = open(path)
    store.audit.prune({ entries: 2 }, 5)
    expect(await verifyAudit(store.audit)).toMatchObject({ ok: true, entries: 3, anchor: { seq: 8 } })
    expect(store.audit.entry(11)).toMatchObject({
      actor: 'host',
      action: 'audit_removal',
      summary: expect.stringContaining('did not hold at entry 4'),
      details: { problem: 'changed', seq: 4 },
    })
  })
})

test('a host that is killed in the middle leaves a chain that holds, with all that was promised', async () => {
  const path = databasePath()
  const code = `
    import { writeSync } from 'node:fs'
    import { openStore } from ${JSON.stringify(storeModule)}
    const store = openStore({ path: ${JSON.stringify(path)}, durability: 'process', prepare: false })
    const entry = { at: 1, group: 'a', actor: 'agent', action: 'x', summary: 'y', outcome: 'allowed' }
    for (;;) {
      let seq = 0
      store.transaction(transaction => {
        for (let i = 0; i < 7; i++) seq = transaction.audit(entry)
      })
      writeSync(1, seq + '\\n')
      if (seq % 21 === 0) store.audit.prune({ entries: 50 }, 1)
    }
  `
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'close')
  let said = ''
  for await (const piece of child.stdout) {
    said += piece
    if (said.length > 2000) child.kill('SIGKILL')
  }
  await ended
  const store = open(path)
  const last = Number(said.slice(0, said.lastIndexOf('\n')).split('\n').at(-1))
  const head = store.audit.head()
  expect(head.seq % 7).toBe(0)
  expect(head.seq).toBeGreaterThanOrEqual(last)
  expect(await verifyAudit(store.audit)).toMatchObject({ ok: true, head })
  expect(store.audit.append(entry(1))).toBe(head.seq + 1)
  expect(await verifyAudit(store.audit, head)).toMatchObject({ ok: true })
})
