import {
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Claims, createClaims } from './claims.ts'
import { type DirectoryHandle, openDirectory } from './directory.ts'
import { listDirectory } from './listing.ts'
import { run, startChild, temporaryFolder, until } from './testing/rig.ts'
import type { ClaimedFile } from './types.ts'

const limit = 1000

/** A writer's directory, our directory for claimed files, and a secret outside both. */
function scene() {
  const root = temporaryFolder()
  const [inbox, claimed, outside] = ['inbox', 'claimed', 'outside'].map(name => join(root, name))
  if (!inbox || !claimed || !outside) throw new Error('unreachable')
  mkdirSync(inbox)
  mkdirSync(outside)
  const secret = join(outside, 'secret.json')
  writeFileSync(secret, '{"secret":true}', { mode: 0o600 })
  const claims = createClaims({ directory: claimed, fileLimit: limit, firstSeq: 1 })
  return { inbox, claimed, outside, secret, claims }
}

function open(path: string): DirectoryHandle {
  const directory = openDirectory(path)
  if (typeof directory === 'string') throw new Error(`${path} is ${directory}`)
  onTestFinished(() => directory.close())
  return directory
}

/** Claims the only posted file, whatever its name is. */
function claimOnly(claims: Claims, inbox: string): ClaimedFile {
  const directory = open(inbox)
  const { names } = listDirectory(directory)
  expect(names).toHaveLength(1)
  const [name = ''] = names
  const file = claims.claim(directory, 'g', 'messages', name)
  if (typeof file === 'string') throw new Error(file)
  expect(listDirectory(directory).names).toEqual([])
  expect(lstatSync(file.path)).toBeDefined()
  return file
}

const canMakeDevices = () => {
  const folder = temporaryFolder()
  try {
    run('mknod', join(folder, 'null'), 'c', '1', '3')
    return true
  } catch {
    return false
  }
}

describe('a claimed file', () => {
  it('is moved out of its writer’s directory and read completely', () => {
    const { inbox, claimed, claims } = scene()
    writeFileSync(join(inbox, '1700000000000-x.json'), '{"text":"ä"}')
    const about = lstatSync(join(inbox, '1700000000000-x.json'))
    const file = claimOnly(claims, inbox)
    expect(file).toMatchObject({
      seq: 1,
      inbox: 'g',
      subdirectory: 'messages',
      name: '1700000000000-x.json',
      text: '{"text":"ä"}',
      problem: undefined,
      inode: about.ino,
      size: 13,
      recovered: false,
    })
    expect(readdirSync(inbox)).toEqual([])
    expect(readdirSync(join(claimed, '0'))).toEqual(['1~g~messages~1700000000000-x.json'])
  })

  const refused: [
    what: string,
    problem: string,
    make: (path: string, at: ReturnType<typeof scene>) => void,
  ][] = [
    ['a link to a file', 'not_a_file', (path, { secret }) => symlinkSync(secret, path)],
    ['a link to a directory', 'not_a_file', (path, { outside }) => symlinkSync(outside, path)],
    ['a link to nothing', 'not_a_file', path => symlinkSync('nowhere', path)],
    ['a link to itself', 'not_a_file', path => symlinkSync(path, path)],
    ['a FIFO that nobody writes to', 'not_a_file', path => run('mkfifo', path)],
    ['a directory', 'not_a_file', path => mkdirSync(path)],
    [
      'a directory with something in it',
      'not_a_file',
      path => {
        mkdirSync(path)
        writeFileSync(join(path, 'x.json'), '{}')
      },
    ],
    ['a file with a second name', 'not_a_file', (path, { secret }) => linkSync(secret, path)],
    [
      'a sparse file of two gigabytes',
      'too_large',
      path => {
        writeFileSync(path, '')
        truncateSync(path, 2 ** 31)
      },
    ],
    ['a file one byte too large', 'too_large', path => writeFileSync(path, 'x'.repeat(limit + 1))],
    [
      'bytes that are not UTF-8',
      'invalid_utf8',
      path => writeFileSync(path, Buffer.from([0x22, 0xff, 0x22])),
    ],
    ['a character cut in two', 'invalid_utf8', path => writeFileSync(path, Buffer.from('"ä').subarray(0, 2))],
    [
      'a lone surrogate',
      'invalid_utf8',
      path => writeFileSync(path, Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])),
    ],
  ]
  it.each(refused)('is not read if it is %s', (_what, problem, make) => {
    const at = scene()
    const { inbox, outside, secret, claims } = at
    make(join(inbox, 'x.json'), at)
    const outsideBefore = lstatSync(outside)
    const secretBefore = lstatSync(secret)
    const file = claimOnly(claims, inbox)
    expect(file).toMatchObject({ problem, text: '', name: 'x.json' })
    expect(claims.reread(file)).toMatchObject({ problem, text: '' })
    expect(readFileSync(secret, 'utf8')).toBe('{"secret":true}')
    expect(lstatSync(secret)).toMatchObject({ mode: secretBefore.mode, mtimeMs: secretBefore.mtimeMs })
    expect(lstatSync(outside)).toMatchObject({ mtimeMs: outsideBefore.mtimeMs })
  })

  it('is not read if it is a socket', async () => {
    const { inbox, claims } = scene()
    let connections = 0
    const server = createServer(() => connections++)
    await new Promise<void>(resolve => server.listen(join(inbox, 'x.json'), resolve))
    onTestFinished(() => void server.close())
    expect(claimOnly(claims, inbox)).toMatchObject({ problem: 'not_a_file', text: '' })
    expect(connections).toBe(0)
  })

  it('is not read if it is a device (needs mknod)', ({ skip }) => {
    skip(!canMakeDevices(), 'mknod is not permitted here')
    const { inbox, claims } = scene()
    run('mknod', join(inbox, 'x.json'), 'c', '1', '5')
    expect(claimOnly(claims, inbox)).toMatchObject({ problem: 'not_a_file', text: '' })
  })

  it('can be empty, and as large as the limit', () => {
    const { inbox, claims } = scene()
    writeFileSync(join(inbox, 'x.json'), 'x'.repeat(limit))
    expect(claimOnly(claims, inbox)).toMatchObject({ problem: undefined, size: limit })
    writeFileSync(join(inbox, 'x.json'), '')
    expect(claimOnly(claims, inbox)).toMatchObject({ problem: undefined, size: 0, text: '' })
  })

  it('is never read beyond the limit while its writer keeps writing', async () => {
    const { inbox } = scene()
    const large = createClaims({ directory: join(inbox, '..', 'large'), fileLimit: 1_000_000, firstSeq: 1 })
    for (let round = 0; round < 5; round++) {
      const path = join(inbox, `${round}.json`)
      writeFileSync(path, '')
      const writer = startChild(['grow', path])
      writer.output.catch(() => 'it is killed')
      await until(() => lstatSync(path).size > 0)
      let file = claimOnly(large, inbox)
      // The writer lost the name, but still has the file open.
      for (let look = 0; look < 50; look++) {
        expect(file.text.length).toBe(file.problem ? 0 : file.size)
        expect(file.text.length).toBeLessThanOrEqual(1_000_000)
        expect([undefined, 'too_large']).toContain(file.problem)
        file = large.reread(file)
      }
      writer.process.kill('SIGKILL')
      await writer.output.catch(() => undefined)
    }
  })
})

describe('a name', () => {
  const bad: [what: string, name: string | Buffer, sanitized: string][] = [
    ['a newline', 'a\nb.json', 'a_b.json'],
    ['spaces', 'a b.json', 'a_b.json'],
    ['a tilde', 'a~b~c.json', 'a_b_c.json'],
    ['a leading dash', '-rf.json', '-rf.json'],
    ['255 bytes', `${'a'.repeat(250)}.json`, 'a'.repeat(100)],
    ['bytes that are not UTF-8', Buffer.from([0x61, 0xff, 0xfe, 0x2e, 0x6a, 0x73, 0x6f, 0x6e]), 'a__.json'],
    ['the Unicode replacement character', 'a\ufffd.json', 'a___.json'],
    ['letters outside ASCII', 'ä.json', '__.json'],
    ['terminal control characters', 'a\u001b[2J.json', 'a__2J.json'],
  ]
  it.each(bad)('with %s is refused and sanitized', (_what, name, sanitized) => {
    const { inbox, claimed, claims } = scene()
    writeFileSync(Buffer.concat([Buffer.from(`${inbox}/`), Buffer.from(name)]), '{}')
    const file = claimOnly(claims, inbox)
    expect(file).toMatchObject({ problem: 'bad_name', name: sanitized })
    expect(claims.reread(file)).toMatchObject({ problem: 'bad_name', name: sanitized })
    const again = createClaims({ directory: claimed, fileLimit: limit, firstSeq: 1 })
    expect(again.recover()).toMatchObject([{ seq: 1, problem: 'bad_name', name: sanitized, recovered: true }])
  })

  it.each(['__proto__.json', 'constructor.json', 'a..json', '_.json', `${'a'.repeat(115)}.json`])(
    '%s is valid',
    name => {
      const { inbox, claims } = scene()
      writeFileSync(join(inbox, name), '{}')
      expect(claimOnly(claims, inbox)).toMatchObject({ problem: undefined, name, text: '{}' })
    },
  )

  it.each(['..json', '.json', '.x.json', 'x.json.tmp', 'x.JSON', 'json'])('%s is not posted', name => {
    const { inbox } = scene()
    writeFileSync(join(inbox, name), '{}')
    const { names, others } = listDirectory(open(inbox))
    expect({ names, others }).toEqual({ names: [], others: [name] })
  })
})

describe('claims', () => {
  it('return the error code if a file cannot be claimed', () => {
    const { inbox, claims } = scene()
    expect(claims.claim(open(inbox), 'g', 'messages', 'gone.json')).toBe('ENOENT')
  })

  it('do not use up a seq for a file that could not be claimed', () => {
    const { inbox, claims } = scene()
    claims.claim(open(inbox), 'g', 'messages', 'gone.json')
    writeFileSync(join(inbox, 'x.json'), '{}')
    expect(claimOnly(claims, inbox).seq).toBe(1)
  })

  it('use the directory that was opened, even if another one takes its place', () => {
    const { inbox, outside, secret, claims } = scene()
    const directory = open(inbox)
    writeFileSync(join(inbox, 'secret.json'), '{}')
    run('mv', inbox, `${inbox}-moved`)
    symlinkSync(outside, inbox)
    expect(claims.claim(directory, 'g', 'messages', 'secret.json')).toMatchObject({ text: '{}' })
    expect(claims.claim(directory, 'g', 'messages', 'secret.json')).toBe('ENOENT')
    expect(readFileSync(secret, 'utf8')).toBe('{"secret":true}')
  })

  it('of an earlier process are recovered in order from all buckets, and their seqs are not reused', () => {
    const { inbox, claimed, claims } = scene()
    for (let i = 1; i <= 20; i++) {
      writeFileSync(join(inbox, `${i}.json`), String(i))
      claimOnly(claims, inbox)
      claims.nextBucket()
    }
    writeFileSync(join(claimed, '0', 'stranger'), '')
    const later = createClaims({ directory: claimed, fileLimit: limit, firstSeq: 5 })
    const recovered = later.recover()
    expect(recovered.map(({ seq }) => seq)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1))
    expect(recovered.every(file => file.recovered && file.text === '')).toBe(true)
    expect(recovered.map(file => later.reread(file).text)).toEqual(recovered.map(({ seq }) => String(seq)))
    writeFileSync(join(inbox, 'x.json'), '{}')
    expect(claimOnly(later, inbox).seq).toBe(21)
  })

  it('can adopt a file of our own', () => {
    const { outside, claims } = scene()
    writeFileSync(join(outside, 'mine'), '{}')
    expect(claims.adopt(join(outside, 'mine'), 'g', 'tasks', 'x.json')).toMatchObject({
      seq: 1,
      text: '{}',
      subdirectory: 'tasks',
    })
    expect(claims.adopt(join(outside, 'mine'), 'g', 'tasks', 'x.json')).toBe('ENOENT')
    expect(readdirSync(outside)).toEqual(['secret.json'])
  })

  it('report a file that cannot be read, and keep reporting a bad name', () => {
    const { inbox, claims } = scene()
    writeFileSync(join(inbox, 'x.json'), '{}')
    writeFileSync(join(inbox, 'y y.json'), '{}')
    const directory = open(inbox)
    for (const [name, problem] of [
      ['x.json', 'unreadable'],
      ['y y.json', 'bad_name'],
    ] as const) {
      const file = claims.claim(directory, 'g', 'messages', name)
      if (typeof file === 'string') throw new Error(file)
      rmSync(file.path)
      expect(claims.reread(file)).toMatchObject({ problem, text: '' })
    }
  })
})
