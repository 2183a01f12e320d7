import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  watch,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { createNames, post } from '@hatchway/spool'
import { describe, expect, onTestFinished, test } from 'vitest'
import { configFor, type Live, openLive } from '../../../testing/src/daemon/in-process.ts'
import { launch } from '../../../testing/src/daemon/process.ts'
import { roomyFolder, temporaryFolder } from '../../../testing/src/folders.ts'
import { until } from '../../../testing/src/until.ts'
import { produce } from '../../../testing/src/writers/producer.ts'
import { openHost } from '../assemble/host.ts'
import { registerGroups } from '../assemble/register.ts'
import { layoutOf } from '../base/layout.ts'
import type { NewGroup } from '../commands/groups.ts'
import type { ConfigInput } from '../config.ts'
import { openStore } from '../store/sqlite.ts'

const named = (folder: string, more: Partial<NewGroup> = {}): NewGroup => ({
  folder,
  jid: `${folder}@chat`,
  name: folder,
  main: false,
  dialect: 'hatchway',
  ...more,
})

async function open(
  folders: readonly string[],
  input: ConfigInput = {},
  data = temporaryFolder('flow'),
): Promise<Live> {
  const live = await openLive(input, data)
  onTestFinished(() => live.close())
  for (const folder of folders) await live.host.addGroup(named(folder, { main: folder === 'main' }))
  return live
}

const freshName = createNames()
const message = (folder: string, text: string) =>
  JSON.stringify({ type: 'message', chatJid: `${folder}@chat`, text })
const envelope = (id: string, type: string, payload: object) =>
  JSON.stringify({ version: 1, id, type, payload })

const drop = (live: Pick<Live, 'layout'>, folder: string, body: string, directory = 'tasks') =>
  post(join(live.layout.ipc, folder, directory), body, { name: freshName() })
const say = (live: Live, folder: string, text: string) =>
  drop(live, folder, message(folder, text), 'messages')

const textsOf = ({ host }: Live, group: string) => host.store.messages({ group }).map(({ text }) => text)
const answerOf = ({ layout }: Pick<Live, 'layout'>, folder: string, id: string): unknown =>
  JSON.parse(readFileSync(join(layout.ipc, folder, 'responses', `${id}.json`), 'utf8'))
const isAnswered = ({ layout }: Pick<Live, 'layout'>, folder: string, id: string) =>
  lstatSync(join(layout.ipc, folder, 'responses', `${id}.json`), { throwIfNoEntry: false }) !== undefined
const forgetAnswer = ({ layout }: Live, folder: string, id: string) =>
  rmSync(join(layout.ipc, folder, 'responses', `${id}.json`))

const numbered = (count: number, prefix = 'x') => Array.from({ length: count }, (_, i) => `${prefix}-${i}`)

describe('one group’s commands stay in order', () => {
  test('10,000 under names that carry a sequence, while they are being posted', async () => {
    const live = await open(['a'], {}, roomyFolder('order'))
    await live.start()
    await produce({ data: live.data, folders: ['a'], prefix: 'x', count: 10_000, names: 'hatchway' })
    await until('all are handled', () => live.events.length >= 10_000)
    expect(textsOf(live, 'a')).toEqual(numbered(10_000))
  })

  test('10,000 under NanoClaw’s names, which tell the millisecond only: the files’ own times tell the rest', async () => {
    const live = await open(['a'], {}, roomyFolder('order'))
    const directory = join(live.layout.ipc, 'a', 'messages')
    const begin = Date.now() - 10_000
    const perMillisecond = 20
    for (const [i, text] of numbered(10_000).entries()) {
      const ms = begin + Math.floor(i / perMillisecond)
      // Chance decides where such a name stands among those of its millisecond.
      const path = join(directory, `${ms}-${Math.random().toString(36).slice(2, 8)}.json`)
      writeFileSync(path, message('a', text))
      const seconds = (ms + (i % perMillisecond) / perMillisecond) / 1000
      utimesSync(path, seconds, seconds)
    }
    await live.start()
    expect(textsOf(live, 'a')).toEqual(numbered(10_000))
  })
})

describe('groups take turns', () => {
  test('a file of one group is answered within 50 of the 20,000 another has waiting', async () => {
    const live = await open(['a', 'b'], {}, roomyFolder('turns'))
    await produce({ data: live.data, folders: ['a'], prefix: 'x', count: 20_000, names: 'hatchway' })
    let handled = 0
    const posted: number[] = []
    const between: number[] = []
    live.host.subscribe(({ group }) => {
      if (group === 'b') between.push(handled - (posted.at(-1) ?? 0))
      else if (++handled % 1999 === 0) {
        posted.push(handled)
        say(live, 'b', 'me too')
      }
    })
    await live.start()
    await until('all are handled', () => live.events.length >= 20_000 + posted.length)
    expect(between).toHaveLength(10)
    expect(Math.max(...between)).toBeLessThanOrEqual(50)
  })

  test('a group over its rate waits, and nobody else does', async () => {
    const live = await open(['greedy', 'calm'], { limits: { commandsPerMinute: 120 } })
    await live.start()
    for (const text of numbered(300)) say(live, 'greedy', text)
    await until('the greedy one has used what it may', () => textsOf(live, 'greedy').length >= 120)
    for (const text of numbered(100)) say(live, 'calm', text)
    await until('the calm one is served', () => textsOf(live, 'calm').length === 100)
    const served = textsOf(live, 'greedy').length
    expect(served).toBeLessThan(300)
    // It is made to wait, not turned away.
    await until('the greedy one goes on', () => textsOf(live, 'greedy').length > served + 1)
    expect(textsOf(live, 'greedy')).toEqual(numbered(textsOf(live, 'greedy').length))
    expect(live.host.quarantine.list()).toEqual([])
  })
})

describe('what is over a limit is refused in one summary', () => {
  test('the newest of too many waiting files', async () => {
    const live = await open(['a', 'b'], { limits: { filesWaiting: 100 } })
    for (const text of numbered(150)) say(live, 'a', text)
    for (const text of numbered(100)) say(live, 'b', text)
    await live.start()
    expect(textsOf(live, 'a')).toEqual(numbered(100))
    expect(textsOf(live, 'b')).toEqual(numbered(100))
    const summary = {
      id: 'a-summary',
      source_group: 'a',
      code: 'too_many_waiting',
      original_file: null,
      kept: false,
    }
    expect(live.host.quarantine.list()).toMatchObject([{ ...summary, count: 50 }])
    expect(readdirSync(live.layout.errors)).toEqual(['a-summary.error.json'])

    await live.reopen()
    for (const text of numbered(130, 'y')) say(live, 'a', text)
    await live.start()
    expect(textsOf(live, 'a')).toEqual([...numbered(100), ...numbered(100, 'y')])
    expect(live.host.quarantine.list()).toMatchObject([{ ...summary, count: 80 }])
    expect(readdirSync(join(live.layout.ipc, 'a', 'messages')).filter(name => name !== '.tmp')).toEqual([])
    expect(await live.host.replay('a-summary')).toMatchObject({ ok: false, error: { code: 'not_found' } })
  })

  test('refused files that there is no more space for; their requests are answered all the same', async () => {
    const live = await open(['a', 'b'], { limits: { errorBytes: 20_000 } })
    await live.start()
    const ask = (folder: string, id: string) => drop(live, folder, envelope(id, 'no_such_command', {}))
    for (const id of numbered(10)) ask('a', id)
    ask('b', 'alone')
    await until('all are handled', () => live.events.length === 11)
    for (const id of numbered(10)) {
      await until('it is answered', () => isAnswered(live, 'a', id))
      expect(answerOf(live, 'a', id)).toMatchObject({ ok: false, error: { code: 'unknown_type' } })
    }
    // A disk block and the file itself for each: four of them fit.
    const entries = live.host.quarantine.list()
    expect(entries.filter(({ kept, source_group }) => kept && source_group === 'a')).toHaveLength(4)
    expect(entries.filter(({ source_group }) => source_group === 'b')).toMatchObject([{ kept: true }])
    expect(entries.filter(({ original_file }) => original_file === null)).toMatchObject([
      { id: 'a-summary', count: 6, code: 'unknown_type' },
    ])

    await live.reopen()
    await live.start()
    for (const id of numbered(3, 'y')) ask('a', id)
    await until('all are handled', () => live.events.length === 14)
    const after = live.host.quarantine.list()
    expect(after.filter(({ kept, source_group }) => kept && source_group === 'a')).toHaveLength(4)
    expect(after.find(({ id }) => id === 'a-summary')).toMatchObject({ count: 9 })
  })
})

describe('a repeated request id gets the first answer again', () => {
  const repeatOf = async (live: Live, folder: string, id: string, body: string) => {
    forgetAnswer(live, folder, id)
    drop(live, folder, body)
    await until('it is answered again', () => isAnswered(live, folder, id))
    return answerOf(live, folder, id)
  }

  test('of something done, and does nothing again, also after a restart', async () => {
    const live = await open(['a', 'b'])
    await live.start()
    drop(live, 'a', envelope('r1', 'send_message', { text: 'first' }))
    await until('it is answered', () => isAnswered(live, 'a', 'r1'))
    const first = answerOf(live, 'a', 'r1')
    expect(first).toMatchObject({ ok: true, result: { status: 'queued' } })

    expect(await repeatOf(live, 'a', 'r1', envelope('r1', 'send_message', { text: 'first' }))).toEqual(first)
    expect(await repeatOf(live, 'a', 'r1', envelope('r1', 'send_message', { text: 'second' }))).toEqual(first)
    await live.reopen()
    await live.start()
    const other = envelope('r1', 'schedule_task', {
      prompt: 'p',
      schedule_type: 'interval',
      schedule_value: '60000',
    })
    expect(await repeatOf(live, 'a', 'r1', other)).toEqual(first)
    expect(textsOf(live, 'a')).toEqual(['first'])
    expect(live.host.store.tasks({})).toEqual([])
    expect(live.events.map(({ repeated }) => repeated)).toEqual([false, true, true, true])

    // Another group's request is another request.
    drop(live, 'b', envelope('r1', 'send_message', { text: 'from b' }))
    await until('it is answered', () => isAnswered(live, 'b', 'r1'))
    expect(textsOf(live, 'b')).toEqual(['from b'])
  })

  test('of something refused, also when it would be accepted now, also after a restart', async () => {
    const live = await open(['a'])
    await live.start()
    const pause = envelope('r1', 'pause_task', { task_id: 'later' })
    drop(live, 'a', pause)
    await until('it is answered', () => isAnswered(live, 'a', 'r1'))
    const first = answerOf(live, 'a', 'r1')
    expect(first).toMatchObject({ ok: false, error: { code: 'not_found' } })

    const task = { task_id: 'later', prompt: 'p', schedule_type: 'interval', schedule_value: '60000' }
    drop(live, 'a', envelope('r2', 'schedule_task', task))
    await until('it is answered', () => isAnswered(live, 'a', 'r2'))
    expect(await repeatOf(live, 'a', 'r1', pause)).toEqual(first)
    await live.reopen()
    await live.start()
    expect(await repeatOf(live, 'a', 'r1', pause)).toEqual(first)
    expect(live.host.store.tasks({})).toMatchObject([{ id: 'later', status: 'active' }])
    expect(live.host.quarantine.list()).toHaveLength(1)
  })

  test('of something refused, by a daemon that is killed after it has decided and one that goes on', async () => {
    const data = temporaryFolder('flow')
    onTestFinished(() => rmSync(data, { recursive: true, force: true }))
    const layout = layoutOf(data)
    await registerGroups(configFor(data), [named('a')])
    const ask = () => drop({ layout }, 'a', envelope('r1', 'no_such_command', {}))
    const fault = { env: { HATCHWAY_FAULT: 'committed:1', HATCHWAY_DURABILITY: 'process' } }

    ask()
    expect(await launch(data, fault).exited).toMatchObject({ signal: 'SIGKILL' })
    const second = launch(data)
    await second.ready
    await second.stop()
    expect(readdirSync(layout.errors)).toHaveLength(2)
    const first = answerOf({ layout }, 'a', 'r1')
    rmSync(join(layout.ipc, 'a', 'responses', 'r1.json'))

    ask()
    expect(await launch(data, fault).exited).toMatchObject({ signal: 'SIGKILL' })
    expect(isAnswered({ layout }, 'a', 'r1')).toBe(false)
    const last = launch(data)
    await last.ready
    await last.stop()
    expect(answerOf({ layout }, 'a', 'r1')).toEqual(first)
    // The repeat is no refusal of its own, whoever finishes it.
    expect(readdirSync(layout.errors)).toHaveLength(2)
  })
})

test('a thousand task changes in a burst cost a few snapshots, and the last one is right', async () => {
  const live = await open(['main', 'a'])
  await live.start()
  const schedule = { prompt: 'p', schedule_type: 'interval', schedule_value: '60000' }
  drop(live, 'a', envelope('first', 'schedule_task', { task_id: 'swing', ...schedule }))
  await until('it is answered', () => isAnswered(live, 'a', 'first'))

  const written = new Map<string, number>()
  for (const folder of ['main', 'a']) {
    const watcher = watch(join(live.layout.ipc, folder), (_, name) => {
      const key = `${folder}/${name}`
      written.set(key, (written.get(key) ?? 0) + 1)
    })
    onTestFinished(() => watcher.close())
  }
  for (let i = 0; i < 1000; i++) {
    const type = i % 2 === 0 ? 'pause_task' : 'resume_task'
    drop(live, 'a', envelope(`change-${i}`, type, { task_id: 'swing' }))
  }
  drop(live, 'a', envelope('last', 'update_task', { task_id: 'swing', prompt: 'at rest' }))
  await until('the last is answered', () => isAnswered(live, 'a', 'last'))
  // Whoever has the answer finds it in the snapshot.
  for (const folder of ['main', 'a']) {
    const tasks: unknown = JSON.parse(
      readFileSync(join(live.layout.ipc, folder, 'current_tasks.json'), 'utf8'),
    )
    expect(tasks).toMatchObject([{ id: 'swing', prompt: 'at rest', status: 'active' }])
  }
  await until('the watchers have heard of it', () => (written.get('main/current_tasks.json') ?? 0) > 0)
  for (const folder of ['main', 'a']) {
    expect(written.get(`${folder}/current_tasks.json`)).toBeLessThan(100)
  }
  for (const id of numbered(1000, 'change')) expect(isAnswered(live, 'a', id)).toBe(true)
})

describe('a refused file can be handled again once the cause is mended', () => {
  const refuseOne = async (live: Live) => {
    mkdirSync(join(live.layout.ipc, 'late', 'tasks'), { recursive: true })
    drop(live, 'late', envelope('r1', 'send_message', { text: 'better late' }))
    await live.start()
    expect(answerOf(live, 'late', 'r1')).toMatchObject({ ok: false, error: { code: 'unregistered_group' } })
    const [entry] = live.host.quarantine.list()
    if (!entry) throw new Error('nothing was refused')
    expect(entry).toMatchObject({ code: 'unregistered_group', source_group: 'late', kept: true })
    return entry.id
  }
  const expectDone = (live: Live) => {
    expect(textsOf(live, 'late')).toEqual(['better late'])
    expect(answerOf(live, 'late', 'r1')).toMatchObject({ ok: true, result: { status: 'queued' } })
    expect(readdirSync(live.layout.errors)).toEqual([])
  }

  test('by the daemon that runs', async () => {
    const live = await open(['main'])
    const id = await refuseOne(live)
    await live.host.addGroup(named('late'))
    expect(await live.host.replay(id)).toMatchObject({ ok: true })
    await until('it is handled', () => textsOf(live, 'late').length > 0)
    expectDone(live)
    // What is done can be repeated, not replayed.
    expect(await live.host.replay(id)).toMatchObject({ ok: false, error: { code: 'not_found' } })
  })

  test('by the daemon that comes next', async () => {
    const live = await open(['main'])
    const id = await refuseOne(live)
    await live.stop()
    const command = await openHost(live.config, { watch: false })
    await command.addGroup(named('late'))
    expect(await command.replay(id)).toMatchObject({ ok: true })
    expect(command.store.messages({})).toEqual([])
    await command.stop()
    await live.reopen()
    await live.start()
    expectDone(live)
  })

  test('and is refused again, once more in errors/, where it is not', async () => {
    const live = await open(['main'])
    const id = await refuseOne(live)
    expect(await live.host.replay(id)).toMatchObject({ ok: true })
    await until('it is handled', () => live.events.length === 2)
    await until('it is in errors/', () => live.host.quarantine.list().length === 1)
    expect(live.host.quarantine.list()).toMatchObject([{ code: 'unregistered_group', kept: true }])
    expect(live.host.quarantine.list()[0]?.id).not.toBe(id)
    expect(readdirSync(live.layout.errors)).toHaveLength(2)
  })
})

describe('one daemon per data directory', () => {
  test('a second one says who holds it; after SIGKILL the next starts at once and finishes what is left', async () => {
    const data = roomyFolder('daemons')
    onTestFinished(() => rmSync(data, { recursive: true, force: true }))
    const layout = layoutOf(data)
    await registerGroups(configFor(data), [named('a')])
    const first = launch(data, { env: { HATCHWAY_DURABILITY: 'process' } })
    await first.ready
    const second = launch(data)
    expect(await second.exited).toEqual({ code: 1, signal: null })
    expect(second.output()).toContain(`held by a daemon, process ${first.pid}`)

    const producing = produce({ data, folders: ['a'], prefix: 'x', count: 10_000, names: 'hatchway' })
    await until('it has begun', () => readdirSync(join(layout.ipc, 'a', 'messages')).length > 20)
    await first.kill()
    await producing
    expect(readdirSync(join(layout.ipc, 'a', 'messages')).length).toBeGreaterThan(1)

    const third = launch(data, { env: { HATCHWAY_DURABILITY: 'process' } })
    await third.ready
    await third.stop()
    const store = openStore({ path: layout.database, durability: 'process' })
    onTestFinished(() => store.close())
    expect(store.messages({}).map(({ text }) => text)).toEqual(numbered(10_000))
  })
})
