import { once } from 'node:events'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { expect, onTestFinished, test } from 'vitest'
import { openMemory } from './testing/open.ts'

/** Every thread that is started while the test runs. */
function threadsStarted(): Worker[] {
  const threads: Worker[] = []
  const note = (thread: Worker) => void threads.push(thread)
  process.on('worker', note)
  onTestFinished(() => void process.off('worker', note))
  return threads
}

const databases = (directory: string) =>
  readdirSync(directory)
    .filter(name => name.endsWith('.db'))
    .sort()

test('there is a thread only while it is needed', async () => {
  const threads = threadsStarted()
  const { group } = openMemory({ idleMs: 1 })
  expect(threads).toHaveLength(0)
  for (let i = 1; i <= 3; i++) {
    await group('a').save(`k${i}`, 'text')
    expect(threads).toHaveLength(i)
    const last = threads.at(-1)
    if (last) await once(last, 'exit')
  }
  expect((await group('a').list()).total).toBe(3)
})

test('requests that come while an idle thread ends are answered by the next', async () => {
  const threads = threadsStarted()
  const { group } = openMemory({ idleMs: 0 })
  for (let i = 0; i < 8; i++) {
    await group('a').save(`k${i}`, 'text')
    await new Promise(resolve => setTimeout(resolve, i % 4))
  }
  expect((await group('a').list()).total).toBe(8)
  expect(threads.length).toBeGreaterThan(1)
})

test('a thread that is killed in the middle loses nothing: what it was at is asked again', async () => {
  const threads = threadsStarted()
  const { group, start, lines } = openMemory()
  await start()
  await group('a').save('first', 'saved before')
  const saves = Array.from({ length: 200 }, (_, i) => group(i % 2 ? 'a' : 'b').save(`k${i}`, `text ${i}`))
  await threads[0]?.terminate()
  await Promise.all(saves)
  expect((await group('a').list()).total).toBe(101)
  expect(threads).toHaveLength(2)
  expect((await group('b').list()).total).toBe(100)
  expect(await group('a').keys('before')).toEqual(['first'])
  expect(lines.join()).toContain('The thread of the memories has ended')
})

test('what ends the thread twice is answered with an error, and only that', async () => {
  const threads = threadsStarted()
  const { group } = openMemory()
  const kill = (thread: Worker) => void thread.terminate()
  process.on('worker', kill)
  onTestFinished(() => void process.off('worker', kill))
  const save = group('a').save('k', 'text')
  await expect(save).rejects.toThrow(/thread ended while it was at work on this, twice/)
  expect(threads).toHaveLength(2)
  process.off('worker', kill)
  expect(await group('a').save('k', 'text')).toMatchObject({ replaced: false })
})

test('stopping waits for what is at work', async () => {
  const { group, service } = openMemory({ durability: 'full' })
  const save = group('a').save('k', 'text')
  await service.stop?.()
  expect(await save).toMatchObject({ key: 'k' })
})

test('a damaged file is reported and left alone, and the other groups go on', async () => {
  const { group, directory, service, start, lines } = openMemory()
  await start()
  writeFileSync(join(directory, 'a.db'), 'this was a database once, but no longer. '.repeat(200))
  const before = readFileSync(join(directory, 'a.db'))
  await expect(group('a').save('k', 'text')).rejects.toThrow(/a\.db is damaged .*left as it is.*backup/)
  await expect(group('a').keys('text')).rejects.toThrow(/damaged/)
  expect(readFileSync(join(directory, 'a.db'))).toEqual(before)
  expect(service.state?.()).toEqual({ ok: false, text: 'damaged: the memories of a' })
  expect(lines).toHaveLength(1)
  expect(lines[0]).not.toContain(directory)
  await group('b').save('k', 'text')
  rmSync(join(directory, 'a.db'))
  await group('a').save('k', 'text')
  expect(service.state?.()).toEqual({ ok: true, text: 'ready' })
})

test('damage in the middle of a file is reported, too', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'hatchway-memory-'))
  const before = openMemory({ directory })
  await Promise.all(
    Array.from({ length: 400 }, (_, i) =>
      before.group('a').save(`k${i}`, `common word${i} ${'filler '.repeat(50)}`),
    ),
  )
  await before.service.stop?.()
  const path = join(directory, 'a.db')
  const whole = readFileSync(path)
  copyFileSync(path, join(directory, 'backup'))

  const broken = Buffer.from(whole)
  broken.fill(0xff, 4096 * 3)
  writeFileSync(path, broken)
  const damaged = openMemory({ directory })
  await expect(damaged.group('a').recall('common filler')).rejects.toThrow(/a\.db is damaged/)
  await damaged.service.stop?.()

  writeFileSync(path, whole)
  truncateSync(path, 4096 * 5)
  const cut = openMemory({ directory })
  await expect(cut.group('a').recall('common filler')).rejects.toThrow(/a\.db is damaged/)
  // A backup in its place is enough; nothing has to be restarted.
  copyFileSync(join(directory, 'backup'), path)
  expect(await cut.group('a').keys('word7')).toContain('k7')
})

test('a file of a newer version is not touched', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'hatchway-memory-'))
  const before = openMemory({ directory })
  await before.group('a').save('k', 'text')
  await before.service.stop?.()
  const bytes = readFileSync(join(directory, 'a.db'))
  // where SQLite keeps user_version
  bytes.writeUInt32BE(999, 60)
  writeFileSync(join(directory, 'a.db'), bytes)
  const after = openMemory({ directory })
  await expect(after.group('a').list()).rejects.toThrow(/newer Hatchway/)
})

test('a directory that cannot be made is told without its path', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'hatchway-memory-'))
  writeFileSync(join(directory, 'file'), '')
  const { group } = openMemory({ directory: join(directory, 'file', 'memories') })
  await expect(group('a').list()).rejects.toThrow(/^The memories of this group could not be reached: \w+\.$/)
  rmSync(directory, { recursive: true })
})

test('a folder that is registered anew for another chat begins without memories; the old ones are kept aside', async () => {
  const { group, directory } = openMemory()
  await group('Team', 'old@chat').save('k', 'The old secret.')
  expect(databases(directory)).toEqual(['team.db'])
  const anew = group('team', 'new@chat')
  expect(await anew.keys('secret')).toEqual([])
  await anew.save('k', 'The new one.')
  expect(databases(directory)).toEqual(['team.1.db', 'team.db'])
  // Both of one moment: the requests of the old group are not carried out on the new one's file.
  const both = await Promise.all([
    group('team', 'new@chat').keys('new'),
    group('team', 'third@chat').save('k', 'The third.'),
    group('team', 'third@chat').keys('new'),
  ])
  expect(both).toMatchObject([['k'], { replaced: false }, []])
  expect(databases(directory)).toEqual(['team.1.db', 'team.2.db', 'team.db'])
})

test('the same chat finds its memories again', async () => {
  const { group, directory } = openMemory()
  await group('team', 'same@chat').save('k', 'text')
  expect(await group('TEAM', 'same@chat').keys('text')).toEqual(['k'])
  expect(databases(directory)).toEqual(['team.db'])
})

test('a folder that is none never becomes a path', async () => {
  const base = mkdtempSync(join(tmpdir(), 'hatchway-memory-'))
  const { group, directory } = openMemory({ directory: join(base, 'memories') })
  mkdirSync(directory)
  for (const folder of ['../evil', '..', 'a/b', '', '.hidden', 'a.b', 'x'.repeat(65), 'a\0b'])
    await expect(group(folder).save('k', 'text')).rejects.toThrow('This is not the folder of a group.')
  expect(readdirSync(directory)).toEqual([])
  expect(readdirSync(base)).toEqual(['memories'])
  rmSync(base, { recursive: true })
})

test('more groups than files are kept open are served all the same', async () => {
  const { group, directory } = openMemory()
  for (let round = 0; round < 2; round++)
    for (let i = 0; i < 20; i++) await group(`g${i}`).save(`k${round}`, 'text')
  expect((await group('g0').list()).total).toBe(2)
  expect(databases(directory)).toHaveLength(20)
})
