import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { verifyAudit } from '../../store/audit-verify.ts'
import { openStore } from '../../store/sqlite.ts'
import type { AuditEntry, AuditFilter, Store } from '../../store/types.ts'
import { searchAudit } from './search.ts'

function open(): Store {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-guard-audit-'))
  const store = openStore({ path: join(folder, 'hatchway.db'), durability: 'process', prepare: false })
  onTestFinished(() => {
    store.close()
    rmSync(folder, { recursive: true })
  })
  return store
}
const entry = (more: Partial<AuditEntry> = {}): AuditEntry => ({
  at: 1000,
  group: 'family',
  actor: 'agent',
  action: 'send_message',
  summary: 'says hello',
  outcome: 'allowed',
  ...more,
})
const fill = (store: Store, count: number, of: (n: number) => AuditEntry = () => entry()) =>
  store.transaction(transaction => {
    for (let n = 1; n <= count; n++) transaction.audit(of(n))
  })

test.each<[AuditFilter, number[]]>([
  [{}, [6, 5, 4, 3, 2, 1]],
  [{ group: 'family' }, [6, 4, 2, 1]],
  [{ actor: 'person:Ann' }, [5]],
  [{ action: 'shell' }, [3]],
  [{ gate: 'ask' }, [4, 3]],
  [{ outcome: 'denied' }, [4]],
  [{ decidedBy: 'person:Ann' }, [4]],
  [{ requestId: 'r-2' }, [2]],
  [{ since: 3000, until: 5000 }, [4, 3]],
  [{ text: 'CURL' }, [3]],
  [{ text: '100%' }, [5]],
  [{ text: 'a_b' }, [6]],
  [{ text: "o'clock!" }, [4]],
  [{ text: 'nobody' }, []],
  [{ group: 'family', gate: 'ask', text: 'clock' }, [4]],
])('a search for %j', async (filter, found) => {
  const store = open()
  const entries: Partial<AuditEntry>[] = [
    {},
    { requestId: 'r-2' },
    { action: 'shell', group: 'work', gate: 'ask', details: { command: 'curl example.org' } },
    { gate: 'ask', outcome: 'denied', decidedBy: 'person:Ann', reason: "not after 8 o'clock!" },
    { actor: 'person:Ann', group: null, summary: 'is 100% sure' },
    { summary: 'a_b' },
  ]
  for (const [i, more] of entries.entries()) store.audit.append(entry({ at: (i + 1) * 1000, ...more }))
  expect((await searchAudit(store.audit, filter, { limit: 10 })).map(({ seq }) => seq)).toEqual(found)
})

test('pages go through everything that fits, once each, while entries are added and removed', async () => {
  const store = open()
  fill(store, 7000, n => entry({ group: n % 70 === 0 ? 'rare' : 'family' }))
  const found: number[] = []
  for (let before: number | undefined; ; ) {
    const page = await searchAudit(
      store.audit,
      { group: 'rare' },
      { limit: 30, ...(before !== undefined && { before }) },
    )
    found.push(...page.map(({ seq }) => seq))
    before = page.at(-1)?.seq
    if (page.length < 30) break
    store.audit.append(entry({ group: 'rare' }))
    store.audit.prune({ entries: 6900 }, 0)
  }
  const kept = store.audit.anchor().seq
  expect(kept).toBeGreaterThan(70)
  expect(found).toEqual(Array.from({ length: 99 }, (_, i) => 7000 - i * 70).filter(seq => seq > kept))
})

test('verification gives others their turn, and holds while entries are added and removed', async () => {
  const store = open()
  fill(store, 5000)
  const middle = store.audit.entry(4000)
  if (!middle) throw new Error('there is one')
  let turns = 0
  let done = false
  const checking = verifyAudit(store.audit, middle).finally(() => {
    done = true
  })
  while (!done) {
    await turn()
    turns++
    store.audit.append(entry())
    // The oldest go faster than they are looked at.
    if (store.audit.anchor().seq < 3000) store.audit.prune({ entries: 2000 }, 0)
  }
  expect(await checking).toMatchObject({ ok: true, anchor: { seq: expect.any(Number) } })
  expect(store.audit.anchor().seq).toBeGreaterThanOrEqual(3000)
  expect(turns).toBeGreaterThan(3)
})

test('a log without entries holds, and its head can be kept too', async () => {
  const store = open()
  const head = store.audit.head()
  expect(head).toEqual({ seq: 0, hash: '0'.repeat(64) })
  expect(await verifyAudit(store.audit, head)).toMatchObject({ ok: true, entries: 0 })
  store.audit.append(entry())
  expect(await verifyAudit(store.audit, head)).toMatchObject({ ok: true, entries: 1 })
  expect(await verifyAudit(store.audit, { seq: 2, hash: head.hash })).toMatchObject({ problem: 'cut_off' })
})
