import { createHash } from 'node:crypto'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as breathe } from 'node:timers/promises'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { createNames, post } from '@hatchway/spool'
import { describe, expect, onTestFinished, test } from 'vitest'
import { configFor, type Live, openLive } from '../../../testing/src/daemon/in-process.ts'
import { temporaryFolder } from '../../../testing/src/folders.ts'
import { until } from '../../../testing/src/until.ts'
import { layoutOf } from '../base/layout.ts'
import { openMemoryFile } from '../plugins/memory/database/file.ts'
import { migrate, newestVersion, readMigrations } from '../store/migrate.ts'
import { openStore } from '../store/sqlite.ts'
import { compressed } from './compression.ts'
import { type Manifest, manifestName } from './manifest.ts'
import { restoreBackup } from './restore.ts'
import { padding, readTar, type TarEntry, tarEnd, tarHeader } from './tar.ts'
import { writeBackup } from './write.ts'

/** A backup is made of a host at work and becomes another one, which has lost nothing and does nothing twice. */
const quiet = { agents: { enabled: 'no' }, limits: { commandsPerMinute: 10_000_000 } } as const
const freshName = createNames()

const place = () => {
  const home = temporaryFolder('restore')
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  return join(home, 'data')
}

async function bytesOf(live: Live, options = { groups: true, token: false }): Promise<Buffer> {
  const parts: Buffer[] = []
  const source = { store: live.host.store, layout: live.layout, now: () => new Date() }
  for await (const part of writeBackup(source, options)) parts.push(part)
  return Buffer.concat(parts)
}
async function* from(bytes: Buffer, size = 65_536): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}
const restore = (data: string, bytes: Buffer, force = false) =>
  restoreBackup(configFor(data, quiet), from(bytes), { force })

async function open() {
  const live = await openLive(quiet)
  onTestFinished(() => live.close())
  await live.host.addGroup({ folder: 'main', jid: 'web:main', name: 'Main', main: true, dialect: 'nanoclaw' })
  await live.host.addGroup({
    folder: 'family',
    jid: 'web:family',
    name: 'Family',
    main: false,
    dialect: 'hatchway',
  })
  return live
}
const say = (live: Live, text: string) =>
  post(
    join(live.layout.ipc, 'main', 'messages'),
    JSON.stringify({ type: 'message', chatJid: 'web:main', text, groupFolder: 'main', timestamp: 'now' }),
    { name: freshName() },
  )
const texts = (live: Live) => live.host.store.messages({}).map(({ text }) => text)

test('a backup under load, restored and started, has everything once', async () => {
  const live = await open()
  await live.start()
  const folder = join(live.layout.groups, 'family')
  writeFileSync(join(folder, 'notes.md'), 'the notes')
  symlinkSync('notes.md', join(folder, 'link.md'))
  const memory = { directory: join(live.layout.state, 'memory'), durability: 'process' } as const
  const file = openMemoryFile(memory, { folder: 'family', jid: 'web:family' })
  onTestFinished(() => file.close())
  file.atomically(() => file.sql('UPDATE totals SET memories = 7').run())
  writeFileSync(join(live.layout.state, 'web-token'), 'secret')
  mkdirSync(join(live.layout.files, 'ab'), { recursive: true })
  writeFileSync(join(live.layout.files, 'ab', 'attachment'), 'bytes')

  const bytes: Buffer[] = []
  let said = 0
  for (let round = 0; round < 2; round++) {
    const before = said
    let isDone = false
    const made = bytesOf(live).then(all => {
      bytes.push(all)
      isDone = true
    })
    while (!isDone) {
      for (let i = 0; i < 25 && said < before + 3000; i++) say(live, `message ${said++}`)
      await breathe()
    }
    await made
    const data = place()
    const all = bytes.at(-1) ?? Buffer.alloc(0)
    const report = await restore(data, round % 2 === 0 ? zstdCompressSync(all) : gzipSync(all))
    expect(report).toMatchObject({ groups: 2, store_version: newestVersion, moved_to: null })
    expect(existsSync(join(data, 'state', 'web-token'))).toBe(false)
    const other = await openLive(quiet, data)
    await other.start()
    await until('nothing waits', () => readdirSync(join(other.layout.ipc, 'main', 'messages')).length === 0)
    const heard = texts(other)
    // Nothing that was there when it began is missing, and nothing is there twice.
    expect(new Set(heard).size).toBe(heard.length)
    const there = new Set(heard)
    for (let i = 0; i < before; i++) expect(there).toContain(`message ${i}`)
    expect(heard.length).toBeGreaterThanOrEqual(before)
    expect(readFileSync(join(other.layout.groups, 'family', 'link.md'), 'utf8')).toBe('the notes')
    expect(lstatSync(join(other.layout.groups, 'family', 'link.md')).isSymbolicLink()).toBe(true)
    expect(readFileSync(join(other.layout.files, 'ab', 'attachment'), 'utf8')).toBe('bytes')
    const kept = openMemoryFile(
      { ...memory, directory: join(other.layout.state, 'memory') },
      { folder: 'family', jid: 'web:family' },
    )
    expect(kept.sql('SELECT memories FROM totals').get()).toEqual({ memories: 7 })
    kept.close()
    await other.stop()
  }
  await until('the first one has handled all', () => texts(live).length === said)
  expect(readdirSync(live.layout.state).filter(name => name.startsWith('backup-'))).toEqual([])
})

test('what waits and what is claimed goes along, and is handled by the restored one, once', async () => {
  const live = await open()
  say(live, 'waiting')
  mkdirSync(join(live.layout.spool, '0'), { recursive: true })
  writeFileSync(
    join(live.layout.spool, '0', '7~main~messages~claimed.json'),
    JSON.stringify({
      type: 'message',
      chatJid: 'web:main',
      text: 'claimed',
      groupFolder: 'main',
      timestamp: 'now',
    }),
  )
  const data = place()
  await restore(data, await bytesOf(live))
  const other = await openLive(quiet, data)
  onTestFinished(() => other.close())
  await other.start()
  expect(texts(other).sort()).toEqual(['claimed', 'waiting'])
})

test('without the groups’ files, and with the token, where that is said', async () => {
  const live = await open()
  writeFileSync(join(live.layout.groups, 'family', 'notes.md'), 'the notes')
  writeFileSync(join(live.layout.state, 'web-token'), 'secret')
  const sessions = (data: string) => {
    const database = new DatabaseSync(layoutOf(data).database)
    const count = database.prepare('SELECT count(*) AS count FROM web_sessions').get()?.count
    database.close()
    return count
  }
  const far = Date.now() + 86_400_000
  live.host.store.webSessions.add({
    id: 'a',
    idHash: 'b',
    way: 'password',
    name: 'ana',
    credential: 'c',
    claims: [],
    address: '127.0.0.1',
    browser: 'x',
    createdAt: 1,
    seenAt: 1,
    expiresAt: far,
  })
  const data = place()
  await restore(data, await bytesOf(live, { groups: false, token: true }))
  expect(sessions(data)).toBe(1)
  const signedOut = place()
  await restore(signedOut, await bytesOf(live))
  expect(sessions(signedOut)).toBe(0)
  expect(existsSync(join(data, 'groups', 'family', 'notes.md'))).toBe(false)
  expect(readdirSync(join(data, 'groups')).sort()).toEqual(['family', 'main'])
  expect(readFileSync(join(data, 'state', 'web-token'), 'utf8')).toBe('secret')
})

test('a restored copy is another installation, and has the modes and owners it needs', async () => {
  const live = await open()
  live.host.store.setMeta('installation', 'the first')
  const data = place()
  await restore(data, await bytesOf(live))
  const store = openStore({ path: layoutOf(data).database, durability: 'process' })
  expect(store.meta('installation')).toMatch(/^[0-9a-f-]{36}$/)
  store.close()
  for (const room of ['state', 'spool', 'files']) expect(lstatSync(join(data, room)).mode & 0o777).toBe(0o700)
  for (const room of ['', 'ipc', 'groups']) expect(lstatSync(join(data, room)).mode & 0o777).toBe(0o755)
  const agents = lstatSync(join(live.layout.ipc, 'main', 'tasks')).uid
  expect(lstatSync(join(data, 'ipc', 'main', 'tasks')).uid).toBe(agents)
  expect(lstatSync(join(data, 'groups', 'main')).uid).toBe(agents)
})

test('an agent that swaps a directory for a link does not get the host’s files into a backup', async () => {
  const live = await open()
  const secrets = temporaryFolder('secrets')
  onTestFinished(() => rmSync(secrets, { recursive: true }))
  const secret = 'what no agent may read'
  for (let i = 0; i < 20; i++) writeFileSync(join(secrets, `file-${i}`), secret)
  const folder = join(live.layout.groups, 'family')
  for (let i = 0; i < 20; i++) {
    mkdirSync(join(folder, `d${i}`))
    for (let j = 0; j < 20; j++) writeFileSync(join(folder, `d${i}`, `file-${j}`), 'harmless')
  }
  let goes = true
  const attack = (async () => {
    while (goes) {
      for (let i = 0; i < 20; i++) {
        renameSync(join(folder, `d${i}`), join(folder, `real${i}`))
        symlinkSync(secrets, join(folder, `d${i}`))
        await breathe()
        unlinkSync(join(folder, `d${i}`))
        renameSync(join(folder, `real${i}`), join(folder, `d${i}`))
      }
    }
  })()
  for (let round = 0; round < 3; round++) expect((await bytesOf(live)).includes(secret)).toBe(false)
  goes = false
  await attack
})

describe('an archive that is not whole', () => {
  const prepared = async () => {
    const live = await open()
    writeFileSync(join(live.layout.groups, 'family', 'notes.md'), 'x'.repeat(3000))
    return bytesOf(live)
  }
  const untouched = (data: string) => {
    expect(existsSync(data)).toBe(false)
    expect(readdirSync(join(data, '..'))).toEqual([])
  }

  test('because it was cut off is refused, wherever that was', async () => {
    const whole = await prepared()
    const packed = zstdCompressSync(whole)
    const data = place()
    for (const part of [0, 3, 100, 512, 4096, whole.length >> 1, whole.length - 5000, whole.length - 1025]) {
      await expect(restore(data, whole.subarray(0, part))).rejects.toThrow(/archive/)
      untouched(data)
    }
    for (const part of [1, packed.length >> 1, packed.length - 1]) {
      await expect(restore(data, packed.subarray(0, part))).rejects.toThrow(/archive/i)
      untouched(data)
    }
    await restore(data, whole)
  })

  test('because a byte is another is refused', async () => {
    const whole = await prepared()
    const data = place()
    const seed = Number(process.env.HATCHWAY_SEED ?? Date.now() % 100_000)
    let state = seed
    const random = (below: number) => {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
      return state % below
    }
    let refused = 0
    for (let round = 0; round < 60; round++) {
      const changed = Buffer.from(whole)
      const at = random(whole.length - 1024)
      changed[at] = ((changed[at] ?? 0) + 1 + random(255)) % 256
      try {
        await restore(data, changed)
        // Padding, and fields that nobody reads, may be anything.
        rmSync(data, { recursive: true })
      } catch (error) {
        expect(error, `seed ${seed}, byte ${at}`).toMatchObject({
          name: expect.stringMatching(/^(ArchiveBroken|RestoreRefused)$/),
        })
        refused++
        untouched(data)
      }
    }
    expect(refused).toBeGreaterThan(20)
  })
})

describe('an archive that somebody made to harm', () => {
  const entry = (path: string, more: Partial<TarEntry> = {}): TarEntry => ({
    path,
    kind: 'file',
    mode: 0o600,
    size: 0,
    mtimeMs: 0,
    target: '',
    ...more,
  })
  const file = (path: string, content: string) => [
    tarHeader(entry(path, { size: Buffer.byteLength(content) })),
    Buffer.from(content),
    padding(Buffer.byteLength(content)),
  ]
  const member = (path: string, content: string): Manifest['members'][number] => ({
    path,
    kind: 'file',
    size: Buffer.byteLength(content),
    sha256: createHash('sha256').update(content).digest('hex'),
  })
  const archive = (parts: readonly Buffer[], members: Manifest['members'], more: Partial<Manifest> = {}) => {
    const manifest: Manifest = {
      format: 'hatchway-backup',
      version: 1,
      hatchway: '0.1.0',
      store_version: 1,
      made_at: new Date().toISOString(),
      groups: true,
      left_out: [],
      members,
      ...more,
    }
    return Buffer.concat([...parts, ...file(manifestName, JSON.stringify(manifest)), tarEnd])
  }
  const refused = async (bytes: Buffer) => {
    const data = place()
    await expect(restore(data, bytes)).rejects.toMatchObject({ name: 'ArchiveBroken' })
    expect(readdirSync(join(data, '..'))).toEqual([])
  }

  test.each([
    '../escape',
    '/etc/escape',
    'state/../../escape',
    'state//x',
    'elsewhere/x',
    'state/./x',
    '.',
    '',
    `groups/${'x'.repeat(256)}`,
    'groups/a\0b',
  ])('with a member at %j', async path => {
    await refused(archive(file(path, 'x'), [member(path, 'x')]))
  })

  test('with a link, and a file behind it', async () => {
    const outside = temporaryFolder('outside')
    onTestFinished(() => rmSync(outside, { recursive: true }))
    const link = (path: string) => tarHeader(entry(path, { kind: 'link', target: outside }))
    await refused(archive([link('state')], [{ path: 'state', kind: 'link', size: 0, sha256: null }]))
    await refused(
      archive([link('groups/family')], [{ path: 'groups/family', kind: 'link', size: 0, sha256: null }]),
    )
    const members: Manifest['members'] = [
      { path: 'groups/family/dir', kind: 'link', size: 0, sha256: null },
      member('groups/family/dir/escape', 'x'),
    ]
    const data = place()
    await expect(
      restore(data, archive([link('groups/family/dir'), ...file('groups/family/dir/escape', 'x')], members)),
    ).rejects.toMatchObject({ name: 'ArchiveBroken' })
    expect(readdirSync(outside)).toEqual([])
    expect(existsSync(data)).toBe(false)
  })

  test('with something that is no file, twice the same, or more or less than it says', async () => {
    for (const type of ['1', '3', '4', '6', 'L', 'g', '\0']) {
      const bytes = tarHeader(entry('groups/a/b'))
      // The last block is the header itself; its sum is made right again.
      const header = bytes.subarray(-512)
      header.write(type, 156)
      let sum = 0
      for (const [at, byte] of header.entries()) sum += at >= 148 && at < 156 ? 32 : byte
      header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
      await refused(archive([bytes], []))
    }
    await refused(archive([...file('ipc/a', 'x'), ...file('ipc/a', 'y')], [member('ipc/a', 'x')]))
    await refused(archive(file('ipc/a', 'x'), []))
    await refused(archive([], [member('ipc/a', 'x')]))
    await refused(archive(file('ipc/a', 'x'), [member('ipc/a', 'y')]))
    await refused(Buffer.concat([archive([], []).subarray(0, -1024), ...file('ipc/a', 'x'), tarEnd]))
    await refused(Buffer.concat([...file(manifestName, '{}'), tarEnd]))
    await refused(Buffer.concat([tarHeader(entry(manifestName, { size: 2 ** 40 })), Buffer.alloc(4096)]))
    await refused(zstdCompressSync(Buffer.from('nothing of ours'.repeat(100))))
  })

  test('with a database that is none, or that somebody has changed', async () => {
    await refused(archive([], []))
    await refused(
      archive(file('state/hatchway.db', 'x'.repeat(5000)), [member('state/hatchway.db', 'x'.repeat(5000))]),
    )
  })
})

describe('a backup of another version', () => {
  const rewritten = async (change: (database: DatabaseSync) => void, more: Partial<Manifest> = {}) => {
    const live = await open()
    const members: Manifest['members'] = []
    const parts: Buffer[] = []
    for await (const { entry, content } of readTar(from(await bytesOf(live)))) {
      const found: Buffer[] = []
      for await (const part of content) found.push(Buffer.from(part))
      let bytes = Buffer.concat(found)
      if (entry.path === 'state/hatchway.db') {
        const path = join(temporaryFolder('version'), 'x.db')
        const database = new DatabaseSync(path)
        change(database)
        database.close()
        bytes = readFileSync(path)
        rmSync(join(path, '..'), { recursive: true })
      }
      if (entry.path === manifestName) {
        const manifest: Manifest = { ...JSON.parse(bytes.toString()), members, ...more }
        bytes = Buffer.from(JSON.stringify(manifest))
      } else {
        const sha256 = entry.kind === 'file' ? createHash('sha256').update(bytes).digest('hex') : null
        members.push({ path: entry.path, kind: entry.kind, size: bytes.length, sha256 })
      }
      parts.push(tarHeader({ ...entry, size: bytes.length }), bytes, padding(bytes.length))
    }
    return Buffer.concat([...parts, tarEnd])
  }

  test('that is newer is refused', async () => {
    const data = place()
    const newer = (database: DatabaseSync) => {
      migrate(database)
      database.exec('PRAGMA user_version = 99')
    }
    await expect(restore(data, await rewritten(newer))).rejects.toThrow('store version 99')
    await expect(restore(data, await rewritten(migrate, { store_version: 99 }))).rejects.toThrow(
      'store version 99',
    )
    await expect(restore(data, await rewritten(migrate, { version: 2, hatchway: '9.0.0' }))).rejects.toThrow(
      'newer Hatchway (9.0.0)',
    )
    expect(existsSync(data)).toBe(false)
  })

  test('that is older is brought up to date', async () => {
    const data = place()
    await restore(
      data,
      await rewritten(
        database => {
          migrate(database, readMigrations().slice(0, 1))
          database.exec(
            "INSERT INTO groups VALUES ('old', 'web:old', 'Old', 0, 'hatchway', NULL, 0, NULL, 1, NULL)",
          )
        },
        { store_version: 1 },
      ),
    )
    const store = openStore({ path: layoutOf(data).database, durability: 'process' })
    onTestFinished(() => store.close())
    expect(store.groups()).toMatchObject([{ folder: 'old' }])
    expect(existsSync(join(data, 'ipc', 'old', 'tasks'))).toBe(true)
  })
})

describe('a data directory that is in use', () => {
  test('is not restored into; with force it is moved aside, unless a daemon has it', async () => {
    const live = await open()
    const bytes = await bytesOf(live)
    const data = place()
    const other = await openLive(quiet, data)
    await expect(restore(data, bytes)).rejects.toThrow('is not empty')
    await expect(restore(data, bytes, true)).rejects.toThrow('is held by a daemon')
    await other.stop()
    writeFileSync(join(data, 'mine'), 'kept')
    const report = await restore(data, bytes, true)
    expect(readFileSync(join(report.moved_to ?? '', 'mine'), 'utf8')).toBe('kept')
    const store = openStore({ path: layoutOf(data).database, durability: 'process' })
    expect(store.groups()).toHaveLength(2)
    store.close()
  })
})

test('the archive can be read by any tar', async () => {
  const { execFileSync } = await import('node:child_process')
  const live = await open()
  const long = join(live.layout.groups, 'family', 'ä'.repeat(100))
  mkdirSync(long)
  writeFileSync(join(long, 'b'.repeat(200)), 'deep')
  const chunks: Buffer[] = []
  const source = { store: live.host.store, layout: live.layout, now: () => new Date() }
  for await (const part of compressed(writeBackup(source, { groups: true, token: false }), 'gzip'))
    chunks.push(part)
  const folder = temporaryFolder('tar')
  onTestFinished(() => rmSync(folder, { recursive: true }))
  execFileSync('tar', ['-xzf', '-', '-C', folder], { input: Buffer.concat(chunks) })
  expect(readFileSync(join(folder, 'groups', 'family', 'ä'.repeat(100), 'b'.repeat(200)), 'utf8')).toBe(
    'deep',
  )
  expect(JSON.parse(readFileSync(join(folder, manifestName), 'utf8'))).toMatchObject({
    format: 'hatchway-backup',
  })
})
