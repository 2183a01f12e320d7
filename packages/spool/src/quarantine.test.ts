import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createQuarantine, type Refused } from './quarantine.ts'
import { run, temporaryFolder } from './testing/rig.ts'

const at = new Date('2026-01-02T03:04:05.678Z')
const reason = { code: 'malformed', error: 'It is not JSON.', type: null, at }

function scene(limitBytes = 1_000_000) {
  const root = temporaryFolder()
  const [errors, claimed, staging] = ['errors', 'claimed', 'staging'].map(name => join(root, name))
  if (!errors || !claimed || !staging) throw new Error('unreachable')
  for (const path of [claimed, staging]) mkdirSync(path)
  const refused = (seq: number, name = 'x.json', inbox = 'a'): Refused => ({
    seq,
    inbox,
    subdirectory: 'messages',
    name,
    path: join(claimed, `${seq}~${inbox}~messages~${name}`),
    size: 0,
  })
  /** writes a claimed file that will be refused */
  const file = (seq: number, content = 'broken', name?: string, inbox?: string): Refused => {
    const about = refused(seq, name, inbox)
    writeFileSync(about.path, content, { mode: 0o777 })
    return { ...about, size: content.length }
  }
  /** opens the quarantine as a new process would */
  const open = () => createQuarantine({ directory: errors, staging, limitBytes })
  return { errors, claimed, staging, refused, file, open }
}

describe('a refused file', () => {
  it('is kept under a name that says whose it was, with the reason beside it', () => {
    const { errors, claimed, staging, file, open } = scene()
    open().put(file(7), { ...reason, type: 'send_message' })
    expect(readdirSync(errors).sort()).toEqual(['a-e.7-x.json.error', 'a-e.7-x.json.error.json'])
    expect(readFileSync(join(errors, 'a-e.7-x.json.error'), 'utf8')).toBe('broken')
    expect(lstatSync(join(errors, 'a-e.7-x.json.error')).mode & 0o777).toBe(0o640)
    expect(JSON.parse(readFileSync(join(errors, 'a-e.7-x.json.error.json'), 'utf8'))).toEqual({
      id: '7',
      original_file: 'x.json',
      error: 'It is not JSON.',
      processed_at: '2026-01-02T03:04:05.678Z',
      source_group: 'a',
      directory: 'messages',
      code: 'malformed',
      type: 'send_message',
      kept: true,
      size: 6,
      count: 1,
    })
    expect(readdirSync(claimed)).toEqual([])
    expect(readdirSync(staging)).toEqual([])
  })

  it('is kept once, no matter at which step a crash happens', () => {
    const whole = scene()
    whole.open().put(whole.file(7), reason)
    const expected = readdirSync(whole.errors).sort()
    const entry = readFileSync(join(whole.errors, 'a-e.7-x.json.error.json'), 'utf8')

    const steps: Record<string, (at: ReturnType<typeof scene>) => Refused> = {
      'nothing was done': ({ file }) => file(7),
      'the reason was written': ({ errors, file }) => {
        writeFileSync(join(errors, 'a-e.7-x.json.error.json'), entry)
        return file(7)
      },
      'a reason was cut short': ({ errors, file }) => {
        writeFileSync(join(errors, 'a-e.7-x.json.error.json'), '')
        return file(7)
      },
      'the file was moved': ({ errors, file }) => {
        const about = file(7)
        writeFileSync(join(errors, 'a-e.7-x.json.error.json'), entry)
        renameSync(about.path, join(errors, 'a-e.7-x.json.error'))
        return about
      },
    }
    for (const [step, crash] of Object.entries(steps)) {
      const scenery = scene()
      mkdirSync(scenery.errors)
      const about = crash(scenery)
      const quarantine = scenery.open()
      for (let time = 0; time < 2; time++) {
        quarantine.put(about, reason)
        expect(readdirSync(scenery.errors).sort(), step).toEqual(expected)
        expect(readFileSync(join(scenery.errors, 'a-e.7-x.json.error.json'), 'utf8'), step).toBe(entry)
        expect(existsSync(about.path), step).toBe(false)
      }
      expect(scenery.open().list(), step).toHaveLength(1)
    }
  })

  const special: [what: string, make: (path: string, secret: string) => void][] = [
    ['a link', (path, secret) => symlinkSync(secret, path)],
    ['a FIFO', path => run('mkfifo', path)],
    ['a file with a second name', (path, secret) => linkSync(secret, path)],
  ]
  it.each(special)('that is %s is not kept, and its target is not touched', (_what, make) => {
    const { errors, claimed, refused, open } = scene()
    const secret = join(temporaryFolder(), 'secret')
    writeFileSync(secret, 'secret', { mode: 0o604 })
    make(refused(1).path, secret)
    const quarantine = open()
    quarantine.put(refused(1), reason)
    expect(readdirSync(errors)).toEqual(['a-e.1-x.json.error.json'])
    expect(quarantine.list()).toMatchObject([{ kept: false, size: 0 }])
    expect(readdirSync(claimed)).toEqual([])
    expect(readFileSync(secret, 'utf8')).toBe('secret')
    expect(lstatSync(secret)).toMatchObject({ nlink: 1 })
    expect(lstatSync(secret).mode & 0o777).toBe(0o604)
  })

  it('that is a directory is moved with its content', () => {
    const { errors, refused, open } = scene()
    const { path } = refused(1)
    mkdirSync(join(path, 'inner'), { recursive: true })
    writeFileSync(join(path, 'inner', 'file'), 'x')
    const quarantine = open()
    quarantine.put(refused(1), reason)
    expect(readFileSync(join(errors, 'a-e.1-x.json.error', 'inner', 'file'), 'utf8')).toBe('x')
    expect(quarantine.list()).toMatchObject([{ kept: true }])
  })
})

describe('the space of an inbox', () => {
  const block = 4096

  it('is separate; files beyond it are counted in one summary and not kept', () => {
    const { errors, claimed, file, open } = scene(2 * (block + 1000))
    const quarantine = open()
    for (let seq = 1; seq <= 5; seq++) quarantine.put(file(seq, 'x'.repeat(1000)), reason)
    quarantine.put(file(6, 'x'.repeat(1000), 'y.json', 'b'), reason)
    expect(quarantine.list().map(({ id, source_group, count }) => ({ id, source_group, count }))).toEqual([
      { id: '1', source_group: 'a', count: 1 },
      { id: '2', source_group: 'a', count: 1 },
      { id: 'a-summary', source_group: 'a', count: 3 },
      { id: '6', source_group: 'b', count: 1 },
    ])
    expect(quarantine.find('a-summary')).toMatchObject({
      code: 'malformed',
      error: expect.stringContaining('It is not JSON.'),
      kept: false,
    })
    expect(readdirSync(errors)).toContain('a-summary.error.json')
    expect(readdirSync(claimed)).toEqual([])
  })

  it('counts a block for each small file, and counts a file once if it is put in twice', () => {
    const { file, open } = scene(2 * block + 12)
    const quarantine = open()
    const first = file(1)
    for (let time = 0; time < 5; time++) quarantine.put(first, reason)
    quarantine.put(file(2), reason)
    quarantine.put(file(3), reason)
    expect(quarantine.list().map(({ id }) => id)).toEqual(['1', '2', 'a-summary'])
  })

  it('counts a file beyond it once, even if it is put in again', () => {
    const { file, open } = scene(0)
    const quarantine = open()
    const first = file(1)
    quarantine.put(first, reason)
    quarantine.put(first, reason)
    expect(quarantine.list()).toMatchObject([{ id: 'a-summary', count: 1 }])
  })

  it('is restored by the next process, and so are the counts', () => {
    const { file, open } = scene(2 * (block + 1000))
    const before = open()
    for (let seq = 1; seq <= 3; seq++) before.put(file(seq, 'x'.repeat(1000)), reason)
    before.flush()
    const after = open()
    after.put(file(4, 'x'.repeat(1000)), reason)
    after.count('a', 'too_many_waiting', 'Too many.', 10, at)
    expect(open().find('a-summary')).toMatchObject({ count: 12, code: 'too_many_waiting' })
    expect(open().list()).toHaveLength(3)
  })

  it('is freed when an entry is forgotten', () => {
    const { claimed, file, open } = scene(block + 1000)
    const quarantine = open()
    for (let seq = 1; seq <= 4; seq++) {
      quarantine.put(file(seq, 'x'.repeat(1000)), reason)
      const entry = quarantine.find(String(seq))
      if (!entry) throw new Error(`${seq} was not kept`)
      // Like a replay: the file is moved back, then the entry is forgotten.
      renameSync(quarantine.pathOf(entry), join(claimed, 'again'))
      quarantine.forget(entry)
      expect(quarantine.list()).toEqual([])
    }
  })

  it('starts counting from zero when its summary is forgotten', () => {
    const { errors, open } = scene()
    const quarantine = open()
    quarantine.count('a', 'too_many_waiting', 'Too many.', 10, at)
    const summary = quarantine.find('a-summary')
    if (!summary) throw new Error('there is no summary')
    quarantine.forget(summary)
    quarantine.forget(summary)
    expect(readdirSync(errors)).toEqual([])
    quarantine.count('a', 'too_many_waiting', 'Too many.', 1, at)
    expect(quarantine.find('a-summary')?.count).toBe(1)
  })

  it('does not keep an empty directory beyond it, but keeps one with content, which is not safe to remove', () => {
    const { errors, claimed, refused, open } = scene(0)
    mkdirSync(refused(1).path)
    mkdirSync(join(refused(2).path, 'inner'), { recursive: true })
    const quarantine = open()
    quarantine.put(refused(1), reason)
    quarantine.put(refused(2), reason)
    expect(readdirSync(claimed)).toEqual([])
    expect(readdirSync(errors).sort()).toEqual(['a-e.2-x.json.error', 'a-e.2-x.json.error.json'])
    expect(quarantine.find('a-summary')?.count).toBe(1)
  })
})

describe('the quarantine', () => {
  it('ignores unrelated and damaged files in its directory', () => {
    const { errors, file, open } = scene()
    open().put(file(1), reason)
    for (const name of ['b-summary.error.json', 'b-e.5-x.json.error.json'])
      writeFileSync(join(errors, name), '')
    writeFileSync(join(errors, 'c-e.6-x.json.error.json'), '[1]')
    writeFileSync(join(errors, 'notes.txt'), 'x')
    mkdirSync(join(errors, 'd-e.1-x.json.error.json'))
    const quarantine = open()
    expect(quarantine.list().map(({ id }) => id)).toEqual(['1'])
    quarantine.count('b', 'too_many_waiting', 'Too many.', 2, at)
    expect(quarantine.find('b-summary')?.count).toBe(2)
  })

  it('separates inboxes with similar names', () => {
    const { file, open } = scene()
    const quarantine = open()
    const inboxes = ['a', 'a-e', 'a-summary', 'a-e-1', '__proto__']
    for (const [i, inbox] of inboxes.entries()) {
      quarantine.put(file(i + 1, 'broken', 'a-e.1-x.json', inbox), reason)
      quarantine.count(inbox, 'too_many_waiting', 'Too many.', i + 1, at)
    }
    const again = open()
    for (const [i, inbox] of inboxes.entries()) {
      const entry = again.find(String(i + 1))
      expect(entry?.source_group).toBe(inbox)
      expect(again.find(`${inbox}-summary`)?.count).toBe(i + 1)
      if (entry) expect(existsSync(again.pathOf(entry))).toBe(true)
    }
  })

  it('lists the oldest first', () => {
    const { file, open } = scene()
    const quarantine = open()
    for (const [seq, ms] of [
      [3, 2],
      [10, 1],
      [9, 1],
    ] as const) {
      quarantine.put(file(seq), { ...reason, at: new Date(ms) })
    }
    expect(quarantine.list().map(({ id }) => id)).toEqual(['9', '10', '3'])
  })
})
