import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Owner } from '@hatchway/spool'
import { expect, onTestFinished, test } from 'vitest'
import type { IncomingRow } from '../store/types.ts'
import { createInputBox, inputId } from './input-box.ts'

const openBox = (owner?: Owner) => {
  const root = mkdtempSync(join(tmpdir(), 'hatchway-box-'))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  chmodSync(root, 0o755)
  const directory = join(root, 'ipc')
  const input = join(directory, 'input')
  const staging = join(root, 'staging')
  mkdirSync(input, { recursive: true, mode: 0o755 })
  mkdirSync(staging, { mode: 0o700 })
  if (owner) chownSync(input, owner.uid, owner.gid)
  const box = createInputBox({
    directory,
    dialect: 'hatchway',
    staging,
    owner,
    timezone: 'UTC',
    now: () => new Date(),
  })
  return { root, input, staging, box }
}

const row = (id: number): IncomingRow => ({
  id,
  group: 'family',
  jid: 'family@chat',
  channel: 'test',
  externalId: null,
  sender: 'ada',
  senderName: 'Ada',
  text: `number ${id}`,
  status: 'waiting',
  runId: null,
  createdAt: 0,
})

const isRoot = process.getuid?.() === 0
const asRoot = isRoot || process.env.CI === 'true' ? test : test.skip

asRoot('a host that is root gives the agent’s user what it can read and remove', () => {
  const owner = { uid: 1000, gid: 1000 }
  const { input, box } = openBox(owner)
  box.post(row(7))
  box.close()
  for (const name of [`${inputId(7)}.json`, '_close']) {
    const { uid, gid, mode } = statSync(join(input, name))
    expect([uid, gid, mode & 0o777]).toEqual([1000, 1000, 0o600])
    expect(spawnSync('cat', [join(input, name)], owner)).toMatchObject({ status: 0 })
    expect(spawnSync('rm', [join(input, name)], owner)).toMatchObject({ status: 0 })
  }
  expect(box.taken()).toEqual([inputId(7)])
})

test('what somebody put in the place of a message is replaced, and not followed', () => {
  const { root, input, box } = openBox()
  const secret = join(root, 'secret')
  writeFileSync(secret, 'mine')
  symlinkSync(secret, join(input, `${inputId(1)}.json`))
  expect(spawnSync('mkfifo', [join(input, '_close')]).status).toBe(0)
  box.post(row(1))
  box.close()
  expect(readFileSync(secret, 'utf8')).toBe('mine')
  expect(JSON.parse(readFileSync(join(input, `${inputId(1)}.json`), 'utf8'))).toMatchObject({
    text: 'number 1',
  })
  expect(statSync(join(input, '_close')).isFile()).toBe(true)
})

test('a directory with something in it in that place is an error, and nothing half-written is left', () => {
  const { input, staging, box } = openBox()
  mkdirSync(join(input, '_close', 'in the way'), { recursive: true })
  expect(() => box.close()).toThrow()
  expect(readdirSync(staging)).toEqual([])
})

test('whatever was left in it goes, and nothing else: links, bytes as names, too many levels, locked ones', async () => {
  const { root, input, box } = openBox()
  const outside = join(root, 'outside')
  mkdirSync(outside)
  writeFileSync(join(outside, 'kept'), '')
  symlinkSync(outside, join(input, 'link'))
  mkdirSync(join(input, 'deep', 'er'), { recursive: true })
  symlinkSync(outside, join(input, 'deep', 'er', 'link'))
  writeFileSync(join(input, 'deep', 'er', 'file'), '')
  writeFileSync(Buffer.concat([Buffer.from(`${input}/`), Buffer.from([0xff, 0xc0, 0x2e])]), '')
  const strange = Buffer.concat([Buffer.from(`${input}/`), Buffer.from([0xfe])])
  mkdirSync(strange)
  writeFileSync(Buffer.concat([strange, Buffer.from('/x')]), '')
  for (let i = 0; i < 3000; i++) writeFileSync(join(input, `f${i}`), '')
  // Deeper than any path may be.
  const level = 'x'.repeat(200)
  const down = `i=0; while [ $i -lt 50 ]; do mkdir ${level}; cd -P ${level}; i=$((i+1)); done; : > end`
  expect(spawnSync('sh', ['-c', down], { cwd: input }).status).toBe(0)
  mkdirSync(join(input, 'locked', 'inner'), { recursive: true })
  chmodSync(join(input, 'locked', 'inner'), 0)
  chmodSync(join(input, 'locked'), 0)
  chmodSync(input, 0)
  await box.clear()
  expect(readdirSync(input)).toEqual([])
  expect(readdirSync(outside)).toEqual(['kept'])
  box.post(row(1))
  expect(existsSync(join(input, `${inputId(1)}.json`))).toBe(true)
})

test('a link in the place of the box is not followed, and named', async () => {
  const { root, input, box } = openBox()
  rmSync(input, { recursive: true })
  mkdirSync(join(root, 'outside'))
  writeFileSync(join(root, 'outside', 'kept'), '')
  symlinkSync(join(root, 'outside'), input)
  await expect(box.clear()).rejects.toThrow('input/ cannot be emptied')
  expect(existsSync(join(root, 'outside', 'kept'))).toBe(true)
})
