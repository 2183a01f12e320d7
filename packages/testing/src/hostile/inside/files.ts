import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  ftruncateSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Attack, drops, places, succeeds } from './attack.ts'
import { ledgerFolder } from './ledger.ts'

const isPosted = (drop: string, name: string) =>
  drops.some(known => drop === join(places.ipc, known)) && name.endsWith('.json') && !name.startsWith('.')

const mostEntries = 300
/** What other attacks post at the same time, with what has to be decided about it: they say what is in it. */
const isPredicted = (name: string) => /-(?!races)[a-z]+\d+\.json$|^\.half-/.test(name)

/**
 * Any operation on any name in any directory it has, thought up by chance. What becomes a posted name is counted, and
 * what it takes back itself is not: a rename never lands on a name that is there, so that this can be said.
 */
export async function files(attack: Attack): Promise<void> {
  const { random, known, ledger } = attack
  const roots = [
    ...readdirSync(places.ipc, { withFileTypes: true }).flatMap(entry =>
      entry.isDirectory() ? [join(places.ipc, entry.name)] : [],
    ),
    ...[places.group, places.home, places.temporary, places.memory, join(places.group, '.home')],
  ]
  const readOnly = [
    places.ipc,
    places.global,
    places.program,
    places.model,
    '/',
    '/etc',
    '/usr',
    '/opt/hatchway',
  ]
  const servers: Server[] = []
  let posted = 0
  let counter = 0
  const settle = () => {
    if (posted !== 0) ledger.write({ kind: 'count', posted })
    posted = 0
  }
  const strange = [
    '\u001b[2J',
    '\n',
    '\u202e',
    '..',
    ' ',
    '~',
    '%s%n',
    "';--",
    '$(id)',
    '-rf',
    '\u0001',
    'é',
    '\ufffd',
    'x'.repeat(180),
  ]
  const freshName = () => {
    const part = random.chance(0.3) ? random.pick(strange) : 'f'
    const ending = random.pick([
      '.json',
      '.json',
      '.json.tmp',
      '',
      '.JSON',
      '.json~',
      '.error',
      '.error.json',
      '.progress.json',
    ])
    return `${random.chance(0.1) ? '.' : ''}${part}${attack.random.below(1e6)}-${counter++}${ending}`.replaceAll(
      '/',
      '_',
    )
  }
  const some = (directory: string): string | undefined => {
    try {
      const names = readdirSync(directory).filter(
        name => name !== ledgerFolder && name !== '.home' && !isPredicted(name),
      )
      return names.length === 0 ? undefined : random.pick(names)
    } catch {
      return undefined
    }
  }
  const appear = (directory: string, name: string, make: (path: string) => void) => {
    if (succeeds(() => make(join(directory, name))) && isPosted(directory, name)) posted++
  }
  const vanish = (directory: string, name: string, remove: (path: string) => void) => {
    if (succeeds(() => remove(join(directory, name))) && isPosted(directory, name)) posted--
  }
  const targets = [
    ...known.paths,
    '/proc/self/root',
    '/proc/1/environ',
    '..',
    '../../../state/hatchway.db',
    '/dev/zero',
    '/',
  ]
  /** Made under another name, so that the host does not take it away half-made. */
  const deep = (path: string) => {
    const built = join(path, '..', `.deep-${counter++}`)
    mkdirSync(join(built, ...Array.from({ length: 40 }, () => 'd')), { recursive: true })
    renameSync(built, path)
  }
  const body = () =>
    random.pick([
      '',
      '{',
      JSON.stringify({ type: 'message', chatJid: known.own.jid, text: `made ${counter}` }),
      Buffer.from([0xff, 0xfe, 0]),
      'x'.repeat(random.below(3_000)),
    ])
  const create = [
    (path: string) => writeFileSync(path, body(), { flag: 'wx' }),
    (path: string) => symlinkSync(random.pick(targets), path),
    (path: string) => mkdirSync(path),
    deep,
    (path: string) => {
      const fd = openSync(path, 'wx')
      ftruncateSync(fd, 2 ** (10 + random.below(30)))
      closeSync(fd)
    },
    (path: string) => {
      writeFileSync(path, body(), { flag: 'wx', mode: random.pick([0, 0o200, 0o400, 0o7777]) })
      succeeds(() => chmodSync(path, random.pick([0, 0o100, 0o4777, 0o6755])))
    },
  ]
  const change = [
    (path: string) => chmodSync(path, random.pick([0, 0o200, 0o500, 0o700, 0o777, 0o7777])),
    (path: string) => truncateSync(path, random.below(5_000_000)),
    (path: string) => utimesSync(path, random.pick([-1e9, 0, 1e10]), random.pick([-1e9, 0, 1e10])),
    (path: string) => {
      const fd = openSync(path, 'r+')
      writeSync(fd, 'scribble', random.below(200))
      closeSync(fd)
    },
  ]
  const listen = (path: string) =>
    new Promise<void>(resolve => {
      const server = createServer()
      server.on('error', () => resolve())
      server.listen(path, () => {
        servers.push(server)
        resolve()
      })
    })

  try {
    for (let n = 0; !attack.isOver(); n++) {
      const directory = random.pick(roots)
      const name = freshName()
      const there = some(directory)
      const from = random.pick(roots)
      const other = some(from)
      switch (random.below(12)) {
        case 0:
          // A pipe and a socket need a program, or a moment.
          if (n % 20 === 0)
            appear(directory, name, path => execFileSync('/usr/bin/mkfifo', [path], { stdio: 'ignore' }))
          else if (n % 20 === 1 && name.length < 60) {
            await listen(join(directory, name))
            if (lstatSync(join(directory, name), { throwIfNoEntry: false }) && isPosted(directory, name))
              posted++
          }
          break
        case 1:
        case 2:
        case 3:
          appear(directory, name, random.pick(create))
          break
        case 4:
          if (other !== undefined) {
            // Both ends at once, or nothing.
            if (succeeds(() => renameSync(join(from, other), join(directory, name)))) {
              if (isPosted(from, other)) posted--
              if (isPosted(directory, name)) posted++
            }
          }
          break
        case 5:
          if (other !== undefined) appear(directory, name, path => linkSync(join(from, other), path))
          break
        case 6:
        case 7:
          if (there !== undefined) vanish(directory, there, unlinkSync)
          break
        case 8:
          if (there !== undefined) vanish(directory, there, rmdirSync)
          break
        case 9:
        case 10:
          if (there !== undefined) succeeds(() => random.pick(change)(join(directory, there)))
          break
        default: {
          const place = random.pick(readOnly)
          if (succeeds(() => random.pick(create)(join(place, freshName()))))
            ledger.write({ kind: 'tried', what: `write to ${place}`, got: 'written' })
          const found = some(place)
          if (found !== undefined && succeeds(() => renameSync(join(place, found), join(place, freshName()))))
            ledger.write({ kind: 'tried', what: `rename ${place}/${found}`, got: 'renamed' })
          if (random.chance(0.2)) {
            // For a moment nobody may enter.
            succeeds(() => chmodSync(directory, random.pick([0, 0o300, 0o500, 0o600])))
            await sleep(random.below(20))
            succeeds(() => chmodSync(directory, 0o700))
          }
        }
      }
      if (n % 100 === 0) {
        settle()
        await sleep(1)
        for (const root of roots) tidy(root)
      }
    }
  } finally {
    // Also where it stumbles over another attack: what was made was made.
    settle()
  }
  for (const root of roots) succeeds(() => chmodSync(root, 0o700))
  for (const server of servers) server.close()
}

/** So that a machine is not filled with what was only to be tried. */
function tidy(root: string): void {
  const list = () => readdirSync(root).filter(name => name !== ledgerFolder && name !== '.home')
  if (!succeeds(list)) return
  const names = list()
  for (const name of names.slice(0, Math.max(0, names.length - mostEntries)))
    if (!isPosted(root, name)) succeeds(() => rmSync(join(root, name), { recursive: true, force: true }))
}
