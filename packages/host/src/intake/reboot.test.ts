import { lstatSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Outcome } from '@hatchway/protocol'
import { expect, onTestFinished, test } from 'vitest'
import { configFor, type Live, openLive } from '../../../testing/src/daemon/in-process.ts'
import { launch } from '../../../testing/src/daemon/process.ts'
import { temporaryFolder } from '../../../testing/src/folders.ts'
import { until } from '../../../testing/src/until.ts'
import { registerGroups } from '../assemble/register.ts'
import { layoutOf } from '../base/layout.ts'
import { openStore } from '../store/sqlite.ts'
import type { CommandRow } from '../store/types.ts'

const done: Outcome = { ok: true, result: { message_id: '5', status: 'queued' } }
const refused: Outcome = { ok: false, error: { code: 'forbidden', message: 'no' } }

/**
 * A machine that went down between a decision and the disk: the decision is in the journal, and the file lies in its
 * directory again as if nobody had ever taken it.
 */
async function afterPowerLoss(
  outcome: Outcome,
  boot: string | undefined,
  change: (row: CommandRow) => CommandRow,
) {
  const data = temporaryFolder('reboot')
  const layout = layoutOf(data)
  const group = { folder: 'a', jid: 'a@chat', name: 'A', main: false, dialect: 'hatchway' } as const
  await registerGroups(configFor(data), [group])
  const path = join(layout.ipc, 'a', 'tasks', '1769900000000-000000-0a0b0c0d.json')
  const body = { version: 1, id: 'r1', type: 'send_message', payload: { text: 'once' } }
  writeFileSync(path, JSON.stringify(body))
  const { ino, mtimeMs } = lstatSync(path)
  const store = openStore({ path: layout.database, durability: 'full' })
  if (boot !== undefined) store.setMeta('boot', boot)
  store.transaction(transaction =>
    transaction.insertCommand(
      change({
        seq: 5,
        group: 'a',
        directory: 'tasks',
        file: '1769900000000-000000-0a0b0c0d.json',
        inode: ino,
        mtimeUs: Math.round(mtimeMs * 1000),
        dialect: 'hatchway',
        type: 'send_message',
        requestId: 'r1',
        reply: { directory: 'responses', id: 'r1', shape: 'receipt' },
        outcome,
        receivedAt: 1,
        tookUs: 1,
      }),
    ),
  )
  store.close()
  onTestFinished(() => rmSync(data, { recursive: true, force: true }))
  return data
}

async function open(data: string): Promise<Live> {
  const live = await openLive({}, data)
  onTestFinished(() => live.close())
  return live
}
/** Files that say nothing of themselves are known by name, inode and time alone. */
const unasked = (row: CommandRow): CommandRow => ({ ...row, requestId: null, reply: null })
const asItWas = (row: CommandRow) => row

const textsOf = ({ host }: Live) => host.store.messages({}).map(({ text }) => text)
const answerIn = ({ layout }: Live) => join(layout.ipc, 'a', 'responses', 'r1.json')
const spooled = ({ layout }: Live) =>
  readdirSync(layout.spool).flatMap(bucket => readdirSync(join(layout.spool, bucket)))

test('what was decided before the machine went down is not executed again, but answered again', async () => {
  const live = await open(await afterPowerLoss(done, 'another boot', asItWas))
  await live.start()
  expect(textsOf(live)).toEqual([])
  expect(JSON.parse(readFileSync(answerIn(live), 'utf8'))).toEqual({ version: 1, id: 'r1', ...done })
  await until('it is gone', () => spooled(live).length === 0)
  expect(readdirSync(join(live.layout.ipc, 'a', 'tasks'))).toEqual([])
  expect(readdirSync(live.layout.errors)).toEqual([])
})

test('what was refused before the machine went down is refused again, and kept', async () => {
  const live = await open(await afterPowerLoss(refused, 'another boot', asItWas))
  await live.start()
  expect(JSON.parse(readFileSync(answerIn(live), 'utf8'))).toEqual({ version: 1, id: 'r1', ...refused })
  await until('it is in errors/', () => readdirSync(live.layout.errors).length === 2)
})

test.each([
  [
    'name',
    (row: CommandRow): CommandRow => ({ ...unasked(row), file: '1769900000001-000000-0a0b0c0d.json' }),
  ],
  ['inode', (row: CommandRow): CommandRow => ({ ...unasked(row), inode: row.inode + 1 })],
  ['time', (row: CommandRow): CommandRow => ({ ...unasked(row), mtimeUs: row.mtimeUs + 1 })],
  ['group', (row: CommandRow): CommandRow => ({ ...unasked(row), group: 'b' })],
] as const)('a file with another %s is another file', async (_, change) => {
  const live = await open(await afterPowerLoss(done, 'another boot', change))
  await live.start()
  expect(textsOf(live)).toEqual(['once'])
})

test('without a reboot in between nothing is known by its looks', async () => {
  const current = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  const live = await open(await afterPowerLoss(done, current, unasked))
  await live.start()
  expect(textsOf(live)).toEqual(['once'])
})

test('only what was there at the start is known by its looks', async () => {
  const live = await open(await afterPowerLoss(done, 'another boot', unasked))
  const path = join(live.layout.ipc, 'a', 'tasks', '1769900000000-000000-0a0b0c0d.json')
  const body = readFileSync(path, 'utf8')
  await live.start()
  expect(textsOf(live)).toEqual([])
  writeFileSync(path, body)
  await until('it is handled', () => live.events.length === 2)
  expect(textsOf(live)).toEqual(['once'])
  await live.reopen()
  writeFileSync(path, body.replace('r1', 'r2'))
  await live.start()
  expect(textsOf(live)).toEqual(['once', 'once'])
})

test.each([
  ['a request', asItWas],
  ['a file without an id', unasked],
] as const)('%s is known to the next host, too, if the first one is killed over it', async (_, change) => {
  const data = await afterPowerLoss(done, 'another boot', change)
  const killed = launch(data, { env: { HATCHWAY_FAULT: 'committed:1' } })
  expect(await killed.exited).toMatchObject({ signal: 'SIGKILL' })
  const live = await open(data)
  expect(spooled(live)).toHaveLength(1)
  await live.start()
  await until('it is gone', () => spooled(live).length === 0)
  expect(textsOf(live)).toEqual([])
})
