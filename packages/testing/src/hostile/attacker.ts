import {
  closeSync,
  constants,
  ftruncateSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { createNames } from '@hatchway/spool'
import { createRandom, type Random } from '../random.ts'
import { switchUser } from './switch-user.ts'

/**
 * What a hostile group does in a tight loop, in a process of its own and under its own user, while the host is at work:
 *
 *   node attacker.ts UID ATTACK DIRECTORY COUNT SEED [TARGET]
 *
 * It ends by saying how many names it has posted and not taken back itself: so many files have to be accounted for.
 */
export interface Spoils {
  posted: number
}

interface Attack {
  /** the group's directory */
  directory: string
  count: number
  random: Random
  /** somewhere outside */
  target: string
  name(): string
}

const valid = (text: string) => JSON.stringify({ type: 'message', chatJid: 'test:evil', text })

const attacks: Record<string, (attack: Attack) => number> = {
  swapDrop,
  swapAnswers,
  rewrite,
  vanish,
  flood,
  litter,
}

/** `tasks/` is taken away and a link to elsewhere, or another directory, put in its place, again and again. */
function swapDrop(attack: Attack): number {
  const { directory, random, name } = attack
  const drop = join(directory, 'tasks')
  const other = join(directory, 'tasks.other')
  mkdirSync(other)
  // Its own files go into the real directory wherever that is: the link leads out of what it can reach itself.
  const handle = openSync(drop, constants.O_RDONLY | constants.O_DIRECTORY)
  let posted = 0
  const postInto = (place: string) => {
    writeFileSync(join(place, '.half'), `{"type":"swapped","n":${posted}}`)
    renameSync(join(place, '.half'), join(place, name()))
    posted++
  }
  swap(drop, attack, {
    before: () => random.chance(0.5) && postInto(`/proc/self/fd/${handle}`),
    meanwhile: () => random.chance(0.3) && postInto(`/proc/self/fd/${handle}`),
    other: () => {
      postInto(other)
      return other
    },
  })
  closeSync(handle)
  merge(other, drop)
  return posted
}

/** `responses/` is treated so while answers are due, and the snapshot replaced by a link while it is written. */
function swapAnswers(attack: Attack): number {
  const { directory, random, target, name } = attack
  const snapshot = join(directory, 'current_tasks.json')
  let posted = 0
  const ask = () => {
    const half = join(directory, 'input', 'half')
    const payload = { prompt: 'p', schedule_type: 'interval', schedule_value: '60000' }
    writeFileSync(
      half,
      JSON.stringify({ version: 1, id: `swap-${posted++}`, type: 'schedule_task', payload }),
    )
    renameSync(half, join(directory, 'tasks', name()))
  }
  const link = () => {
    const half = join(directory, 'input', 'link')
    symlinkSync(join(target, 'old.tmp'), half)
    renameSync(half, snapshot)
  }
  swap(join(directory, 'responses'), attack, {
    before: () => random.chance(0.5) && ask(),
    meanwhile: () => (random.chance(0.5) ? link() : random.chance(0.5) && ask()),
    other: () => undefined,
  })
  return posted
}

interface Steps {
  before(): void
  /** while a link is in the place */
  meanwhile(): void
  /** another directory to put in the place instead, now and then */
  other(): string | undefined
}

function swap(path: string, { count, random, target }: Attack, steps: Steps): void {
  const away = `${path}.away`
  const aside: string[] = []
  /** The host may put a directory there in the moment in which none is. */
  const place = (put: () => void) => {
    for (;;) {
      try {
        return put()
      } catch (error) {
        if (!['EEXIST', 'EISDIR', 'ENOTEMPTY', 'ENOTDIR'].includes(String(codeOf(error)))) throw error
        aside.push(`${path}.aside${aside.length}`)
        renameSync(path, `${path}.aside${aside.length - 1}`)
      }
    }
  }
  for (let i = 0; i < count; i++) {
    steps.before()
    renameSync(path, away)
    const other = random.chance(0.2) ? steps.other() : undefined
    if (other === undefined) {
      place(() => symlinkSync(target, path))
      steps.meanwhile()
      unlinkSync(path)
    } else {
      place(() => renameSync(other, path))
      renameSync(path, other)
    }
    place(() => renameSync(away, path))
  }
  for (const directory of aside) merge(directory, path)
}

/** What lies in one directory goes into the other, except for what the host takes in the meantime. */
function merge(from: string, to: string): void {
  for (const name of readdirSync(from)) {
    try {
      renameSync(join(from, name), join(to, name))
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error
    }
  }
  rmdirSync(from)
}

const codeOf = (error: unknown) => (error instanceof Error && 'code' in error ? error.code : undefined)

/** Files that are written, cut, lengthened and overwritten under their final name, before and after they are taken. */
function rewrite({ directory, count, random, name }: Attack): number {
  const open: number[] = []
  const whole = Buffer.from(valid('rewritten'))
  const long = Buffer.alloc(300_000, ' ')
  const scribble = (fd: number) => {
    switch (random.below(6)) {
      case 0:
        ftruncateSync(fd, 0)
        return
      case 1:
        ftruncateSync(fd, random.below(2_000_000))
        return
      case 2:
        writeSync(fd, long, 0, random.below(long.length), whole.length)
        return
      case 3:
        writeSync(fd, Buffer.from([0xff, 0xfe, 0x00, random.below(256)]), 0, 4, random.below(64))
        return
      default:
        writeSync(fd, whole, 0, 1 + random.below(whole.length), 0)
        ftruncateSync(fd, whole.length)
        writeSync(fd, whole, 0, whole.length, 0)
    }
  }
  for (let i = 0; i < count; i++) {
    open.push(openSync(join(directory, 'messages', name()), 'wx+'))
    for (let step = 0; step < 20; step++) scribble(random.pick(open))
    if (open.length > 16) closeSync(open.splice(random.below(open.length), 1)[0] ?? -1)
  }
  for (const fd of open) closeSync(fd)
  return count
}

/** Posted files that are removed, renamed, hidden or given a second name in the instant in which they are claimed. */
function vanish({ directory, count, random, name }: Attack): number {
  const drop = join(directory, 'messages')
  const names: string[] = []
  let posted = 0
  const succeeds = (work: () => void) => {
    try {
      work()
      return true
    } catch (error) {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'EPERM') return false
      throw error
    }
  }
  for (let i = 0; i < count; i++) {
    const fresh = join(drop, name())
    writeFileSync(join(directory, 'input', 'half'), valid('now you see me'))
    renameSync(join(directory, 'input', 'half'), fresh)
    names.push(fresh)
    posted++
    const known = names[random.below(names.length)] ?? fresh
    const other = join(drop, name())
    switch (random.below(5)) {
      case 0:
        if (succeeds(() => unlinkSync(known))) posted--
        break
      case 1:
        if (succeeds(() => renameSync(known, other))) names.push(other)
        break
      case 2:
        if (succeeds(() => renameSync(known, `${other}.tmp`))) renameSync(`${other}.tmp`, known)
        break
      case 3:
        if (!succeeds(() => linkSync(known, other))) break
        posted++
        if (random.chance(0.5) && succeeds(() => unlinkSync(other))) posted--
        break
    }
    if (names.length > 64) names.splice(0, 32)
  }
  return posted
}

/** As many files as can be, all at once: written beside the directory, which is then put in its place. */
function flood({ directory, count, name }: Attack): number {
  const beside = join(directory, 'flood')
  mkdirSync(beside)
  for (let i = 0; i < count; i++) {
    writeFileSync(join(beside, name()), i % 10 === 0 ? '{"type":"message","text":]' : valid(`flood ${i}`))
  }
  renameSync(join(directory, 'messages'), join(directory, 'before'))
  renameSync(beside, join(directory, 'messages'))
  return count
}

/** Files that are never posted, among them some that are. */
function litter({ directory, count, random, name }: Attack): number {
  let posted = 0
  for (let i = 0; i < count; i++) {
    const place = join(directory, random.pick(['messages', 'tasks', 'groups']))
    const waste = random.pick([
      `${i}.json.tmp`,
      `.${i}.json`,
      `${i}`,
      `${i}.JSON`,
      `${i}.json~`,
      `#${i}.json#`,
      `${i}\n`,
    ])
    writeFileSync(join(place, waste), '')
    if (i % 100 !== 0) continue
    const written = join(directory, 'messages', `${i}.json.half`)
    writeFileSync(written, valid('between the litter'))
    renameSync(written, join(directory, 'messages', name()))
    posted++
  }
  return posted
}

const [uid, kind = '', directory = '', count, seed, target = ''] = process.argv.slice(2)
if (process.getuid?.() === 0) switchUser(Number(uid))
const attack = attacks[kind]
if (!attack) throw new Error(`there is no attack ${kind}`)
const spoils: Spoils = {
  posted: attack({
    directory,
    count: Number(count),
    random: createRandom(Number(seed)),
    target,
    name: createNames(),
  }),
}
// Whoever started it has heard it once it ends the channel.
process.on('disconnect', () => process.exit(0))
process.send?.(spoils)
