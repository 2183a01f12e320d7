import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'

/** Looks over the daemon's shoulder, and says at its end which of Node's costly parts it came to use, and where. */
const witness = `
const users = []
const { Intl } = globalThis
Object.defineProperty(globalThis, 'Intl', {
  get() {
    users.push(new Error().stack.split('\\n')[2].replace(/ *at (\\w+) .*/, '$1'))
    return Intl
  },
})
process.on('exit', () => {
  const fetch = process.moduleLoadList.some(name => name.endsWith('/undici'))
  console.error(JSON.stringify({ fetch, intl: users }))
})`

const imported = `data:text/javascript,${encodeURIComponent(witness)}`
const bin = join(import.meta.dirname, '..', 'bin', 'hatchway.mjs')
// only where nothing else says which time zone it is in
const unneeded = (users: readonly string[]) =>
  users.filter(user => !['machineTimeZone', 'isTimeZone'].includes(user))

test('a command that prints plain text does not load Intl', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-light-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const child = spawn(process.execPath, ['--import', imported, bin, 'groups', 'list', '--data', folder], {
    env: { PATH: process.env.PATH, HOME: folder, TZ: 'UTC' },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const { intl } = JSON.parse(await text(child.stderr))
  expect(unneeded(intl)).toEqual([])
})

test('a daemon that nobody asks anything loads neither fetch nor Intl, which are 22 MB', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-light-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const daemon = spawn(process.execPath, ['--import', imported, bin, 'up', '--data', folder], {
    env: { PATH: process.env.PATH, HOME: folder, TZ: 'UTC', HATCHWAY_WEB_PORT: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void daemon.kill('SIGKILL'))
  const said = text(daemon.stderr)
  await once(daemon.stdout, 'data')
  daemon.kill('SIGTERM')
  const { fetch, intl } = JSON.parse((await said).trim().split('\n').at(-1) ?? '')
  expect(fetch).toBe(false)
  expect(unneeded(intl)).toEqual([])
})
