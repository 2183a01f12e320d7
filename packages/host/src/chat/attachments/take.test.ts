import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ServiceRefusal } from '../../services/define.ts'
import { createAttachmentFiles } from './file-store.ts'
import { takeFile } from './take.ts'

const limit = 1_000_000
const isRoot = process.getuid?.() === 0

function open({ uid }: { uid?: number } = {}) {
  const home = mkdtempSync(join(tmpdir(), 'hatchway-take-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  const path = join(home, 'groups', 'family')
  const files = join(home, 'files')
  mkdirSync(path, { recursive: true })
  mkdirSync(files)
  writeFileSync(join(home, 'secret'), 'of the host')
  const fileStore = createAttachmentFiles(files)
  const folder = { path, reader: uid === undefined ? undefined : { uid, gid: uid } }
  return {
    home,
    path,
    files,
    fileStore,
    write(name: string, content: string | Buffer) {
      mkdirSync(dirname(join(path, name)), { recursive: true })
      writeFileSync(join(path, name), content)
    },
    take: (name: string) => takeFile(folder, name, limit),
    async copy(name: string, meanwhile = (_: number) => {}) {
      const file = await takeFile(folder, name, limit)
      let part = 0
      try {
        const copied = await fileStore.make(
          (async function* () {
            for await (const chunk of file.content) {
              yield chunk
              meanwhile(++part)
            }
          })(),
          file.bytes,
        )
        return { ...copied, content: readFileSync(join(files, copied.id)) }
      } finally {
        await file.close()
      }
    },
  }
}

const refusalOf = async (work: Promise<unknown>): Promise<{ code: string; message: string }> => {
  try {
    await work
  } catch (error) {
    if (error instanceof ServiceRefusal) return { code: error.code, message: error.message }
    throw error
  }
  throw new Error('nothing was refused')
}
const codeOf = async (work: Promise<unknown>) => (await refusalOf(work)).code

test('a file is copied, however its path is written', async () => {
  const { path, files, write, copy } = open()
  write('notes/a.txt', 'hello')
  for (const way of [
    'notes/a.txt',
    './notes//a.txt',
    '/workspace/group/notes/a.txt',
    `${path}/notes/a.txt`,
  ]) {
    const { id, type, bytes, content } = await copy(way)
    expect({ type, bytes, text: content.toString() }).toEqual({ type: 'text/plain', bytes: 5, text: 'hello' })
    expect(statSync(join(files, id)).mode & 0o777).toBe(0o600)
  }
  write('empty', '')
  expect(await copy('empty')).toMatchObject({ bytes: 0 })
  const large = Buffer.alloc(700_001, 'ä')
  write('large', large)
  expect((await copy('large')).content.equals(large)).toBe(true)
})

test.each([
  '../../secret',
  'notes/../../../secret',
  '/etc/passwd',
  '/workspace/group/../ipc/x',
  '/workspace/groupies/x',
  '/',
  'a\0b',
])('a path that leads out is refused: %j', async path => {
  const { take } = open()
  expect(await refusalOf(take(path))).toMatchObject({ code: 'invalid_field' })
})

test('what is not there is said to be not there', async () => {
  const { write, take } = open()
  write('a', '')
  for (const path of ['b', 'c/d/e', 'x'.repeat(300), `${'y'.repeat(300)}/z`, 'é'.repeat(200)]) {
    expect(await codeOf(take(path)), path).toBe('not_found')
  }
  expect(await codeOf(take('a/b'))).toBe('not_a_file')
})

test('no link is followed, wherever it is', async () => {
  const { home, path, write, take, files } = open()
  write('real/deep/file', 'mine')
  symlinkSync(join(home, 'secret'), join(path, 'link'))
  symlinkSync(home, join(path, 'out'))
  symlinkSync('real', join(path, 'in'))
  symlinkSync(home, join(path, 'real', 'out'))
  symlinkSync('file', join(path, 'real', 'deep', 'link'))
  symlinkSync('/proc/self/environ', join(path, 'environ'))
  for (const way of ['link', 'out/secret', 'in/deep/file', 'real/out/secret', 'real/deep/link', 'environ']) {
    expect(await codeOf(take(way)), way).toBe('not_a_file')
  }
  // Even the folder itself.
  rmSync(path, { recursive: true })
  symlinkSync(home, path)
  expect(await codeOf(take('secret'))).toBe('not_found')
  expect(readdirSync(files)).toEqual([])
})

test('only regular files with one name are read', async () => {
  const { home, path, take } = open()
  linkSync(join(home, 'secret'), join(path, 'hard'))
  execFileSync('mkfifo', [join(path, 'fifo')])
  mkdirSync(join(path, 'directory'))
  const server = createServer().listen(join(path, 'socket'))
  onTestFinished(() => void server.close())
  const kinds = ['hard', 'fifo', 'directory', 'directory/', 'socket', '.', '/workspace/group/']
  if (isRoot) {
    execFileSync('mknod', [join(path, 'device'), 'c', '1', '5'])
    kinds.push('device')
  }
  for (const name of kinds) expect(await codeOf(take(name)), name).toBe('not_a_file')
})

test('a giant is refused before a byte of it is read', async () => {
  const { write, path, take } = open()
  write('sparse', '')
  truncateSync(join(path, 'sparse'), 2 ** 40)
  expect(await refusalOf(take('sparse'))).toMatchObject({
    code: 'too_large',
    message: expect.stringContaining('"sparse" has 1099511627776 bytes'),
  })
})

test('a file that grows, shrinks or is written to while it is copied is refused, and nothing stays', async () => {
  const changes: ((path: string) => void)[] = [
    path => appendFileSync(path, 'more'),
    path => truncateSync(path, 300_000),
    path => truncateSync(path, 2 ** 40),
    path => {
      const content = readFileSync(path)
      content[0] = 1
      writeFileSync(path, content)
    },
  ]
  for (const change of changes) {
    const { path, files, write, copy } = open()
    write('growing', Buffer.alloc(600_000, 'x'))
    const copying = copy('growing', part => {
      if (part === 1) change(join(path, 'growing'))
    })
    expect(await codeOf(copying)).toMatch(/^(conflict|too_large)$/)
    expect(readdirSync(files)).toEqual([])
  }
})

test('a name that is given to something else meanwhile changes nothing', async () => {
  const { home, path, write, copy } = open()
  const mine = Buffer.alloc(600_000, 'm')
  write('deep/file', mine)
  const { content } = await copy('deep/file', part => {
    if (part !== 1) return
    unlinkSync(join(path, 'deep', 'file'))
    symlinkSync(join(home, 'secret'), join(path, 'deep', 'file'))
    renameSync(join(path, 'deep'), join(path, 'away'))
    symlinkSync(home, join(path, 'deep'))
  })
  expect(content.equals(mine)).toBe(true)
})

/** As fast as a process can. */
const swapping = `
  const { renameSync } = require('node:fs')
  process.chdir(process.argv[1])
  for (;;) for (const [a, b] of [['real', 'other'], ['mine', 'bait']]) {
    renameSync(a, 'spare')
    renameSync(b, a)
    renameSync('spare', b)
  }`

test('a swap between a file and a link to elsewhere never gets anything out', async () => {
  const { home, path, write, copy } = open()
  write('mine', 'mine')
  write('real/file', 'mine')
  symlinkSync(home, join(path, 'other'))
  symlinkSync(join(home, 'secret'), join(path, 'bait'))
  writeFileSync(join(home, 'file'), 'of the host')
  const swapper = spawn(process.execPath, ['-e', swapping, path], { stdio: 'ignore' })
  const ended = once(swapper, 'exit')
  const seen = new Set<string>()
  const refused = new Set<string>()
  for (let i = 0; i < 500 || seen.size === 0 || !refused.has('not_a_file'); i++) {
    for (const way of ['real/file', 'mine']) {
      try {
        seen.add((await copy(way)).content.toString())
      } catch (error) {
        if (!(error instanceof ServiceRefusal)) throw error
        refused.add(error.code)
      }
    }
  }
  swapper.kill('SIGKILL')
  await ended
  expect([...seen]).toEqual(['mine'])
})

test.runIf(isRoot)('what the agent itself may not read is not read for it', async () => {
  const uid = 12_345
  const { path, write, copy, take } = open({ uid })
  write('own', 'own')
  write('shared', 'shared')
  write('private', 'of root')
  write('closed/file', 'of root')
  chownSync(join(path, 'own'), uid, uid)
  chmodSync(join(path, 'own'), 0o600)
  chmodSync(join(path, 'private'), 0o600)
  chmodSync(join(path, 'closed'), 0o700)
  expect((await copy('own')).content.toString()).toBe('own')
  expect((await copy('shared')).content.toString()).toBe('shared')
  expect(await codeOf(take('private'))).toBe('not_found')
  expect(await codeOf(take('closed/file'))).toBe('not_found')
  chmodSync(join(path, 'own'), 0o077)
  expect(await codeOf(take('own'))).toBe('not_found')
})

test('what is refused is named, and its name obeys nothing', async () => {
  const { take } = open()
  const { message } = await refusalOf(take('a\u001b[31m\u202e\nb'))
  expect(message).toContain('"a')
  expect(message).not.toMatch(/\p{C}/u)
  expect((await refusalOf(take('z'.repeat(4096)))).message.length).toBeLessThan(400)
})
