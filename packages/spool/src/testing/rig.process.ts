import {
  chmodSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { post } from '../post.ts'
import { createQuarantine } from '../quarantine.ts'
import { createSpool } from '../spool.ts'
import type { Report } from '../types.ts'

/** Child processes of the tests: `node rig.process.ts <command> <argument>…` prints its result as JSON. */
const commands: Record<string, (...args: string[]) => unknown> = {
  /** reads every posted file of a directory as soon as it appears, until it has read `count` files */
  read(directory = '', count = '') {
    const seen = new Set<string>()
    const broken: string[] = []
    while (seen.size < Number(count)) {
      for (const name of readdirSync(directory)) {
        if (!name.endsWith('.json') || seen.has(name)) continue
        seen.add(name)
        try {
          JSON.parse(readFileSync(join(directory, name), 'utf8'))
        } catch {
          broken.push(name)
        }
      }
    }
    return { seen: seen.size, broken }
  },

  /** posts numbered files, alternating between the directories */
  post(count = '', ...directories: string[]) {
    for (let i = 0; i < Number(count); i++)
      post(directories[i % directories.length] ?? '', JSON.stringify({ i }))
    return {}
  },

  /** the same with pauses between none and the time that a file takes */
  postWithPauses: (count = '', ...directories: string[]) => postWithPauses(Number(count), directories),

  /** posts repeatedly under one name; the files are too large for a single write */
  postSame(directory = '', name = '', count = '') {
    const content = JSON.stringify({ text: 'x'.repeat(200_000) })
    for (let i = 0; i < Number(count); i++) post(directory, content, { name })
    return {}
  },

  /** keeps a file open, appends to it and truncates it, until it is killed */
  grow(path = '') {
    const file = openSync(path, 'a')
    const piece = 'x'.repeat(1000)
    for (let i = 1; ; i++) {
      writeSync(file, piece)
      if (i % 2000 === 0) ftruncateSync(file, 0)
    }
  },

  /** alternates between two temporary files, so that the kernel cannot merge the events, until it is killed */
  flood(directory = '') {
    const files = ['a.tmp', 'b.tmp'].map(name => openSync(join(directory, name), 'w'))
    for (;;) for (const file of files) writeSync(file, 'x', 0)
  },

  /** runs a spool with many inboxes and one file in each */
  manyInboxes: (root = '', count = '') => manyInboxes(root, Number(count)),

  /** runs a spool with an entry that cannot be moved beside files that can */
  stuck: (root = '', count = '') => stuck(root, Number(count)),

  /** quarantines a file that belongs to another user */
  quarantine(root = '', name = '') {
    const quarantine = createQuarantine({
      directory: join(root, 'errors'),
      staging: root,
      limitBytes: 1_000_000,
    })
    const file = { seq: 1, inbox: 'a', subdirectory: 'messages', name, path: join(root, name), size: 2 }
    quarantine.put(file, { code: 'malformed', error: 'No.', type: null, at: new Date(0) })
    return {
      kept: quarantine.list().map(({ kept }) => kept),
      files: readdirSync(join(root, 'errors')).sort(),
    }
  },

  /** runs a spool and removes permissions from its directory, or from the parent, for a while */
  takeRights: (root = '', which = '', mode = '') => takeRights(root, which, Number.parseInt(mode, 8)),

  /** runs a spool where the system refuses to watch */
  watchRefused: (root = '') => watchRefused(root),

  /** runs a spool on a mount where writes of the other side cause no events */
  missedEvents: (mounted = '', behind = '') => missedEvents(mounted, behind),
}

async function postWithPauses(count: number, directories: readonly string[]) {
  for (let i = 0; i < count; i++) {
    post(directories[i % directories.length] ?? '', JSON.stringify({ i }))
    const end = performance.now() + ((i * 7) % 10) * 0.05
    if (i % 4 === 0) await sleep(0)
    while (performance.now() < end);
  }
  return {}
}

async function manyInboxes(root: string, count: number) {
  const { spool, reports, delivered, paths } = open(
    root,
    Array.from({ length: count }, (_, i) => `inbox-${i}`),
  )
  for (const path of paths) writeFileSync(join(path, '1700000000000-x.json'), '{}')
  await spool.start()
  await spool.stop()
  return { delivered: delivered.length, kinds: reports.map(({ kind }) => kind) }
}

async function stuck(root: string, count: number) {
  const { spool, reports, delivered, paths } = open(root, ['a'])
  const [path = ''] = paths
  await spool.start()
  for (let i = 1; i <= count; i++) {
    post(path, '{}')
    await until(() => delivered.length === i)
  }
  await spool.stop()
  return { kinds: reports.map(({ kind }) => kind) }
}

async function takeRights(root: string, which: string, mode: number) {
  const count = 100
  const { spool, reports, delivered, scans, paths } = open(root, ['a', 'b'])
  const [a = '', b = ''] = paths
  const directory = which === 'parent' ? join(a, '..') : a
  await spool.start()
  // All synchronous, so the spool sees the files and the permissions together.
  for (let i = 0; i < count; i++) writeFileSync(join(a, `${1_700_000_000_000 + i}-a.json`), '{}')
  writeFileSync(join(a, 'left.tmp'), '')
  chmodSync(directory, mode)
  spool.scan('a')
  const kinds = () => reports.filter(({ inbox }) => inbox === 'a').map(({ kind }) => kind)
  await until(() => kinds().length > 0)
  const scansBefore = scans()
  for (let i = 1; i <= 5; i++) {
    writeFileSync(join(b, `${1_700_000_000_000 + i}-b.json`), '{}')
    await until(() => delivered.filter(name => name.endsWith('-b.json')).length === i)
    await sleep(100)
  }
  const during = {
    delivered: delivered.filter(name => name.endsWith('-a.json')).length,
    scans: scans() - scansBefore,
  }
  chmodSync(directory, 0o755)
  await until(() => delivered.filter(name => name.endsWith('-a.json')).length === count)
  await until(() => kinds().length > 1)
  await spool.stop()
  return { during, kinds: kinds() }
}

async function watchRefused(root: string) {
  const { spool, reports, delivered, paths } = open(root, ['a', 'b'])
  await spool.start()
  const mode = spool.mode('a')
  for (const path of paths) writeFileSync(join(path, '1700000000000-x.json'), '{}')
  await until(() => delivered.length === 2)
  await spool.stop()
  return { mode, reports: reports.map(({ kind, message }) => ({ kind, message })) }
}

async function missedEvents(mounted: string, behind: string) {
  const { spool, reports, delivered } = open(mounted, ['a'])
  await spool.start()
  const kinds = () => reports.map(({ kind }) => kind)
  const first = spool.mode('a')
  // A write on the other side creates the file without an event.
  for (let i = 1; !kinds().includes('missed_event'); i++) {
    writeFileSync(join(behind, `ipc/a/messages/${1_700_000_000_000 + i}-x.json`), '{}')
    await until(() => delivered.length === i)
  }
  const found = spool.mode('a')
  // Claiming a burst of these files causes events of our own, which must not count as working events.
  for (let round = 0; round < 8; round++) {
    const before = delivered.length
    for (let i = 0; i < 20; i++) {
      writeFileSync(join(behind, `ipc/a/messages/${1_700_000_001_000 + round}-${i}.json`), '{}')
      if (i % 4 === 0) await new Promise(resolve => setImmediate(resolve))
    }
    await until(() => delivered.length === before + 20)
  }
  const afterBurst = spool.mode('a')
  // On this side events work, and after a few of them they are trusted again.
  while (spool.mode('a') === 'polling') {
    const expected = delivered.length + 1
    post(join(mounted, 'ipc/a/messages'), '{}')
    await until(() => delivered.length === expected)
  }
  await spool.stop()
  return { first, found, afterBurst, last: spool.mode('a'), kinds: kinds() }
}

function open(root: string, ids: readonly string[]) {
  const reports: Report[] = []
  const delivered: string[] = []
  let listed = 0
  const created = createSpool({
    claimed: join(root, 'spool'),
    firstSeq: 1,
    fileLimit: 1024,
    waitingLimit: 1000,
    events: 'auto',
    sweepMs: 500,
    report: report => reports.push(report),
    fault(step) {
      if (step === 'listed') listed++
    },
  })
  const start = () =>
    created.start(files => {
      delivered.push(...files.map(({ name }) => name))
      created.discard(files)
    })
  const spool = { ...created, start }
  const paths = ids.map(id => {
    const path = join(root, 'ipc', id)
    mkdirSync(join(path, 'messages'), { recursive: true })
    spool.add({ id, path, subdirectories: ['messages'] })
    return join(path, 'messages')
  })
  return { spool, reports, delivered, scans: () => listed, paths }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(2)
}

const [, , command = '', ...args] = process.argv
process.stdout.write(JSON.stringify(await commands[command]?.(...args)))
