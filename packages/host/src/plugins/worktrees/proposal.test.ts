import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deflateSync } from 'node:zlib'
import { beforeEach, expect, test } from 'vitest'
import { examine } from './proposal.ts'

/** Packs as no honest git makes them, given to the host's own. */
let home = ''
let mirror = ''
let work = ''
let base = ''
const environment = {
  PATH: process.env.PATH ?? '/usr/bin:/bin',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'A',
  GIT_AUTHOR_EMAIL: 'a@example.org',
  GIT_COMMITTER_NAME: 'A',
  GIT_COMMITTER_EMAIL: 'a@example.org',
}
const call = (args: string[], input?: string | Buffer) =>
  execFileSync('git', ['-C', work, ...args], { env: environment, ...(input === undefined ? {} : { input }) })
const git = (...args: string[]) => call(args).toString().trim()
const fed = (input: string | Buffer, ...args: string[]) => call(args, input).toString().trim()

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'hatchway-proposal-'))
  mirror = join(home, 'mirror.git')
  work = join(home, 'work')
  mkdirSync(work)
  git('init', '--quiet', '--initial-branch=main', '.')
  writeFileSync(join(work, 'a.txt'), 'a\n')
  git('add', '.')
  git('commit', '--quiet', '--message', 'the beginning')
  git('clone', '--quiet', '--bare', '.', mirror)
  base = git('rev-parse', 'HEAD')
  return () => rmSync(home, { recursive: true, force: true })
})

const looked = (revision: string, pack: Buffer, limits?: { files: number; bytes: number }) => {
  const path = join(home, 'pack')
  writeFileSync(path, pack)
  const signal = AbortSignal.timeout(60_000)
  return examine({
    directory: home,
    mirror,
    pack: path,
    revision,
    base,
    signal,
    ...(limits ? { limits } : {}),
  })
}
const packOf = (revision: string, ...without: string[]) =>
  call(
    ['pack-objects', '--revs', '--stdout', '--thin', '-q'],
    `${revision}\n${without.map(other => `^${other}\n`).join('')}`,
  )
const commitOf = (tree: string, parent = base, message = 'a change') =>
  git('commit-tree', tree, '-p', parent, '-m', message)
const treeOf = (entries: string) => fed(entries, 'mktree', '--missing')
const blobOf = (content: string | Buffer) => fed(content, 'hash-object', '-w', '--stdin')

test('sound commits are described, with control characters in sight', async () => {
  const tree = treeOf(`100644 blob ${blobOf('b\n')}\tb.txt\n`)
  const first = commitOf(tree)
  const second = commitOf(tree, first, 'red \u001b[31m alert')
  expect(await looked(second, packOf(second, base))).toMatchObject({
    revision: second,
    commits: 2,
    subjects: ['red \\u001b[31m alert', 'a change'],
  })
})

test.each([
  ['rubbish', () => Buffer.from('this is no pack at all')],
  ['nothing', () => Buffer.alloc(0)],
])('%s is refused', async (_, pack) => {
  const revision = commitOf(git('rev-parse', 'HEAD^{tree}'))
  await expect(looked(revision, pack())).rejects.toMatchObject({ code: 'service_failed' })
})

test('a revision that the pack does not have is refused', async () => {
  const tree = git('rev-parse', 'HEAD^{tree}')
  const revision = commitOf(tree)
  const other = commitOf(tree, base, 'another')
  await expect(looked(other, packOf(revision, base))).rejects.toMatchObject({ code: 'service_failed' })
})

test('commits of which a file is missing are refused', async () => {
  const revision = commitOf(treeOf(`100644 blob ${'1'.repeat(40)}\tb.txt\n`))
  const pack = call(
    ['pack-objects', '--stdout', '-q'],
    `${revision}\n${git('rev-parse', `${revision}^{tree}`)}\n`,
  )
  await expect(looked(revision, pack)).rejects.toMatchObject({ code: 'service_failed' })
})

test('commits that do not follow from the branch are refused, and so is the branch itself', async () => {
  const tree = git('rev-parse', 'HEAD^{tree}')
  const orphan = git('commit-tree', tree, '-m', 'from nowhere')
  await expect(looked(orphan, packOf(orphan))).rejects.toThrow(/does not follow/)
  rmSync(join(home, 'proposal.git'), { recursive: true })
  await expect(looked(base, packOf(base))).rejects.toThrow(/no commits/)
})

test.each(['.git', '.GIT', 'git~1', '.g\u200cit'])('a directory named %s is refused', async name => {
  const inner = treeOf(`100755 blob ${blobOf('#!/bin/sh\n')}\tpost-merge\n`)
  const revision = commitOf(treeOf(`040000 tree ${inner}\t${name}\n`))
  await expect(looked(revision, packOf(revision, base))).rejects.toMatchObject({ code: 'service_failed' })
})

test('a submodule that would run a command is refused', async () => {
  const modules = blobOf('[submodule "a"]\n\tpath = a\n\turl = -u./evil\n')
  const revision = commitOf(treeOf(`100644 blob ${modules}\t.gitmodules\n160000 commit ${base}\ta\n`))
  await expect(looked(revision, packOf(revision, base))).rejects.toMatchObject({ code: 'service_failed' })
})

test('a few trees that stand for billions of files are refused', async () => {
  let tree = treeOf(`100644 blob ${blobOf('x')}\tx\n`)
  for (let level = 0; level < 12; level++) {
    tree = treeOf(Array.from({ length: 16 }, (_, index) => `040000 tree ${tree}\td${index}\n`).join(''))
  }
  const revision = commitOf(tree)
  await expect(looked(revision, packOf(revision, base))).rejects.toMatchObject({ code: 'quota_exceeded' })
})

test('files that are larger than they may be are refused, however small they were packed', async () => {
  const revision = commitOf(treeOf(`100644 blob ${blobOf(Buffer.alloc(4_000_000))}\tzeros\n`))
  const pack = packOf(revision, base)
  expect(pack.length).toBeLessThan(100_000)
  await expect(looked(revision, pack, { files: 10, bytes: 1_000_000 })).rejects.toMatchObject({
    code: 'quota_exceeded',
  })
})

test('a pack that claims an object of ten gigabytes is refused, and costs nothing', async () => {
  const claimed = 10 * 2 ** 30
  const header: number[] = []
  // A commit, by its claim: those are read into memory whole.
  let rest = Math.floor(claimed / 16)
  header.push(0x80 | (1 << 4) | (claimed % 16))
  for (; rest > 127; rest = Math.floor(rest / 128)) header.push(0x80 | (rest % 128))
  header.push(rest)
  const start = Buffer.from([...Buffer.from('PACK'), 0, 0, 0, 2, 0, 0, 0, 1, ...header])
  const body = Buffer.concat([start, deflateSync(Buffer.from('tree '))])
  const pack = Buffer.concat([body, createHash('sha1').update(body).digest()])
  await expect(looked(base, pack)).rejects.toMatchObject({ code: 'service_failed' })
})
