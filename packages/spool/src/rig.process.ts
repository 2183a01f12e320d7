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
import { post } from './post.ts'
import { createQuarantine } from './quarantine.ts'
import { createSpool } from './spool.ts'
import type { Report } from './types.ts'

/** The other processes of the tests: `node rig.process.ts <command> <argument>…`; the answer is JSON on stdout. */
const commands: Record<string, (...args: string[]) => unknown> = {
  /** reads every posted file of a directory, as soon as it is there, until there were so many */
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

  /** posts numbered files, to each of the directories in turn */
  post(count = '', ...directories: string[]) {
    for (let i = 0; i < Number(count); i++)
      post(directories[i % directories.length] ?? '', JSON.stringify({ i }))
    return {}
  },

  /** the same with pauses: none, too short to notice, or as long as a file takes */
  amble: (count = '', ...directories: string[]) => amble(Number(count), directories),

  /** posts again and again under one name, large enough to be written in more than one step */
  postSame(directory = '', name = '', count = '') {
    const content = JSON.stringify({ text: 'x'.repeat(200_000) })
    for (let i = 0; i < Number(count); i++) post(directory, content, { name })
    return {}
  },

  /** holds a file open, makes it grow and cuts it short again, until it is ended */
  grow(path = '') {
    const file = openSync(path, 'a')
    const piece = 'x'.repeat(1000)
    for (let i = 1; ; i++) {
      writeSync(file, piece)
      if (i % 2000 === 0) ftruncateSync(file, 0)
    }
  },

  /** writes to two unposted files in turn, so that the kernel cannot take the events together, until it is ended */
  noise(directory = '') {
    const files = ['a.tmp', 'b.tmp'].map(name => openSync(join(directory, name), 'w'))
    for (;;) for (const file of files) writeSync(file, 'x', 0)
  },

  /** many inboxes with a file in each */
  manyInboxes: (root = '', count = '') => manyInboxes(root, Number(count)),

  /** an inbox with something in it that it cannot move, and others that it can */
  stuck: (root = '', count = '') => stuck(root, Number(count)),

  /** a file that belongs to somebody else, refused */
  quarantine(root = '', name = '') {
    const quarantine = createQuarantine({
      directory: join(root, 'errors'),
      staging: root,
      limitBytes: 1_000_000,
    })
    const file = { seq: 1, inbox: 'a', drop: 'messages', name, path: join(root, name), size: 2 }
    quarantine.put(file, { code: 'malformed', error: 'No.', type: null, at: new Date(0) })
    return {
      kept: quarantine.list().map(({ kept }) => kept),
      files: readdirSync(join(root, 'errors')).sort(),
    }
  },

  /** a directory of its own, or the one above it, whose rights it takes away for a while, as the user it runs as */
  takeRights: (root = '', which = '', mode = '') => takeRights(root, which, Number.parseInt(mode, 8)),

  /** a spool in a place where watching is refused */
  watchRefused: (root = '') => watchRefused(root),

  /** a spool on a mount whose other side writes without an event */
  missedEvents: (mounted = '', behind = '') => missedEvents(mounted, behind),
}

async function amble(count: number, directories: readonly string[]) {
  for (let i = 0; i < count; i++) {
    post(directories[i % directories.length] ?? '', JSON.stringify({ i }))
    const end = performance.now() + ((i * 7) % 10) * 0.05
    if (i % 4 === 0) await sleep(0)
    while (performance.now() < end);
  }
  return {}
}

async function manyInboxes(root: string, count: number) {
  const { spool, reports, handed, paths } = open(
    root,
    Array.from({ length: count }, (_, i) => `inbox-${i}`),
  )
  for (const path of paths) writeFileSync(join(path, '1700000000000-x.json'), '{}')
  await spool.start()
  await spool.stop()
  return { handed: handed.length, kinds: reports.map(({ kind }) => kind) }
}

async function stuck(root: string, count: number) {
  const { spool, reports, handed, paths } = open(root, ['a'])
  const [path = ''] = paths
  await spool.start()
  for (let i = 1; i <= count; i++) {
    post(path, '{}')
    await until(() => handed.length === i)
  }
  await spool.stop()
  return { kinds: reports.map(({ kind }) => kind) }
}

async function takeRights(root: string, which: string, mode: number) {
  const count = 100
  const { spool, reports, handed, looks, paths } = open(root, ['a', 'b'])
  const [a = '', b = ''] = paths
  const directory = which === 'parent' ? join(a, '..') : a
  await spool.start()
  // All in one go: the spool sees the files and the rights together.
  for (let i = 0; i < count; i++) writeFileSync(join(a, `${1_700_000_000_000 + i}-a.json`), '{}')
  writeFileSync(join(a, 'left.tmp'), '')
  chmodSync(directory, mode)
  spool.look('a')
  const kinds = () => reports.filter(({ inbox }) => inbox === 'a').map(({ kind }) => kind)
  await until(() => kinds().length > 0)
  const looksBefore = looks()
  for (let i = 1; i <= 5; i++) {
    writeFileSync(join(b, `${1_700_000_000_000 + i}-b.json`), '{}')
    await until(() => handed.filter(name => name.endsWith('-b.json')).length === i)
    await sleep(100)
  }
  const during = {
    handed: handed.filter(name => name.endsWith('-a.json')).length,
    looks: looks() - looksBefore,
  }
  chmodSync(directory, 0o755)
  await until(() => handed.filter(name => name.endsWith('-a.json')).length === count)
  await until(() => kinds().length > 1)
  await spool.stop()
  return { during, kinds: kinds() }
}

async function watchRefused(root: string) {
  const { spool, reports, handed, paths } = open(root, ['a', 'b'])
  await spool.start()
  const mode = spool.mode('a')
  for (const path of paths) writeFileSync(join(path, '1700000000000-x.json'), '{}')
  await until(() => handed.length === 2)
  await spool.stop()
  return { mode, reports: reports.map(({ kind, message }) => ({ kind, message })) }
}

async function missedEvents(mounted: string, behind: string) {
  const { spool, reports, handed } = open(mounted, ['a'])
  await spool.start()
  const kinds = () => reports.map(({ kind }) => kind)
  const first = spool.mode('a')
  // Written on the other side: it is there, and nothing rings.
  for (let i = 1; !kinds().includes('missed_event'); i++) {
    writeFileSync(join(behind, `ipc/a/messages/${1_700_000_000_000 + i}-x.json`), '{}')
    await until(() => handed.length === i)
  }
  const found = spool.mode('a')
  // A burst on the other side rings our own bell when it is claimed; that must not count as events that work.
  for (let round = 0; round < 8; round++) {
    const before = handed.length
    for (let i = 0; i < 20; i++) {
      writeFileSync(join(behind, `ipc/a/messages/${1_700_000_001_000 + round}-${i}.json`), '{}')
      if (i % 4 === 0) await new Promise(resolve => setImmediate(resolve))
    }
    await until(() => handed.length === before + 20)
  }
  const afterBurst = spool.mode('a')
  // Now on this side, where events work: it is trusted again after a few.
  while (spool.mode('a') === 'polling') {
    const expected = handed.length + 1
    post(join(mounted, 'ipc/a/messages'), '{}')
    await until(() => handed.length === expected)
  }
  await spool.stop()
  return { first, found, afterBurst, last: spool.mode('a'), kinds: kinds() }
}

function open(root: string, ids: readonly string[]) {
  const reports: Report[] = []
  const handed: string[] = []
  let listed = 0
  const spool = createSpool({
    claimed: join(root, 'spool'),
    firstSeq: 1,
    fileLimit: 1024,
    waitingLimit: 1000,
    events: 'auto',
    sweepMs: 500,
    report: report => reports.push(report),
    consume(files) {
      handed.push(...files.map(({ name }) => name))
      spool.discard(files)
    },
    fault(step) {
      if (step === 'listed') listed++
    },
  })
  const paths = ids.map(id => {
    const path = join(root, 'ipc', id)
    mkdirSync(join(path, 'messages'), { recursive: true })
    spool.add({ id, path, drops: ['messages'] })
    return join(path, 'messages')
  })
  return { spool, reports, handed, looks: () => listed, paths }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(2)
}

const [, , command = '', ...args] = process.argv
process.stdout.write(JSON.stringify(await commands[command]?.(...args)))
