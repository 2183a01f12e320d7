import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import { acquire, DataDirectoryHeld, DataDirectoryUnusable, isFree } from './lock.ts'

const lockModule = join(import.meta.dirname, 'lock.ts')
function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'hatchway-lock-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}
const ownerIn = (data: string): unknown =>
  JSON.parse(readFileSync(join(data, 'state', 'daemon.json'), 'utf8'))

const children: ChildProcess[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

/** Another process that takes the lock and keeps it. */
async function holdElsewhere(data: string, then = 'setInterval(() => {}, 1000)'): Promise<ChildProcess> {
  const code = `
    const { acquire } = await import(${JSON.stringify(lockModule)})
    const lock = await acquire(${JSON.stringify(data)}, { waitMs: 10000, purpose: 'daemon' })
    console.log('held')
    ${then}
  `
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  await once(child.stdout, 'data')
  return child
}

test('the second one is told who holds the directory', async () => {
  const data = folder()
  const child = await holdElsewhere(data)
  const error = await acquire(data).catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(DataDirectoryHeld)
  expect(error).toMatchObject({
    dataDirectory: data,
    lockOwner: { pid: child.pid, what: 'daemon', hostname: hostname() },
  })
  expect(String(error)).toContain(`${data} is held by a daemon, process ${child.pid}, since `)
  expect(isFree(data)).toBe(false)
})

test('an owner that is killed leaves the directory free at once, and its words behind', async () => {
  const data = folder()
  const child = await holdElsewhere(data)
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(ownerIn(data)).toMatchObject({ pid: child.pid })
  const lock = await acquire(data, { waitMs: 0 })
  expect(ownerIn(data)).toMatchObject({ pid: process.pid, what: 'command' })
  lock.release()
})

test('waiting ends when the owner lets go', async () => {
  const data = folder()
  const child = await holdElsewhere(
    data,
    'process.once("SIGTERM", () => lock.release()); setInterval(() => {}, 1000)',
  )
  const waiting = acquire(data, { waitMs: 30_000 })
  child.kill('SIGTERM')
  const lock = await waiting
  lock.release()
})

test('one process cannot have it twice either', async () => {
  const data = folder()
  const first = await acquire(data, { purpose: 'daemon' })
  await expect(acquire(data)).rejects.toThrow(`process ${process.pid}`)
  // The attempt that failed must not have loosened the first one's hold, as closing a handle would with a bare fcntl.
  expect(await tryElsewhere(data)).toBe('DataDirectoryHeld')
  first.release()
  expect(isFree(data)).toBe(true)
})

test('of many that try at the same time exactly one gets it', async () => {
  const data = folder()
  const results = await Promise.all(Array.from({ length: 6 }, () => tryElsewhere(data)))
  expect(results.filter(result => result === 'held')).toHaveLength(1)
})

/** Keeps what it got until all have tried: the end of standard input tells it to go. */
async function tryElsewhere(data: string): Promise<string> {
  const code = `
    const { acquire } = await import(${JSON.stringify(lockModule)})
    await acquire(${JSON.stringify(data)}).then(() => console.log('held'), error => console.log(error.name))
    process.stdin.resume()
  `
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  children.push(child)
  const [output] = await once(child.stdout, 'data')
  return String(output).trim()
}

test('what the file says about the owner decides nothing', async () => {
  const data = folder()
  const first = await acquire(data)
  first.release()
  expect(existsSync(join(data, 'state', 'daemon.json'))).toBe(false)
  const lie = { pid: process.pid, what: 'daemon', since: new Date().toISOString(), hostname: hostname() }
  writeFileSync(join(data, 'state', 'daemon.json'), JSON.stringify(lie))
  const second = await acquire(data)
  writeFileSync(join(data, 'state', 'daemon.json'), '{ broken')
  await expect(acquire(data)).rejects.toThrow('a process that has not said who it is')
  second.release()
})

test('the state directory is nobody else’s', async () => {
  const data = folder()
  const lock = await acquire(data)
  expect(statSync(join(data, 'state')).mode & 0o777).toBe(0o700)
  expect(statSync(join(data, 'state', 'daemon.json')).mode & 0o777).toBe(0o600)
  lock.release()
})

test('a directory that cannot be used is said to be that, not held', async () => {
  const data = folder()
  writeFileSync(join(data, 'state'), 'in the way')
  await expect(acquire(data)).rejects.toBeInstanceOf(DataDirectoryUnusable)
})

test.skipIf(process.getuid?.() === 0)('a directory without the right to write says so', async () => {
  const data = folder()
  chmodSync(data, 0o500)
  await expect(acquire(data)).rejects.toBeInstanceOf(DataDirectoryUnusable)
})
