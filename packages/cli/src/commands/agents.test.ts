import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { node } from '../testing.ts'

const bin = join(import.meta.dirname, '..', '..', 'bin', 'hatchway.mjs')
const sdk = '@anthropic-ai/claude-agent-sdk'

function place(): string {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-drivers-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

/** Packages of the same names as the real ones, without their hundreds of megabytes, and a lock file that npm made. */
function release(folder: string, { version, program }: { version: string; program: string }): string {
  const pack = (name: string, files: Record<string, string>) => {
    const source = join(folder, `${version}-${name.replaceAll('/', '-')}`)
    mkdirSync(source)
    for (const [path, text] of Object.entries({
      'package.json': JSON.stringify({ name, version }),
      ...files,
    })) {
      writeFileSync(join(source, path), text)
      chmodSync(join(source, path), 0o755)
    }
    const [made] = JSON.parse(execFileSync('npm', ['pack', '--json'], { cwd: source, encoding: 'utf8' }))
    return { name, tarball: join(source, made.filename) }
  }
  const packed = [
    pack(sdk, { 'sdk.mjs': 'export const query = 1' }),
    pack(`${sdk}-here`, { claude: program }),
  ]
  const from = join(folder, `release-${version}`)
  mkdirSync(from)
  const dependencies = Object.fromEntries(packed.map(({ name, tarball }) => [name, `file:${tarball}`]))
  writeFileSync(join(from, 'package.json'), JSON.stringify({ name: 'release', private: true, dependencies }))
  execFileSync('npm', ['install', '--package-lock-only', '--offline', '--no-audit'], {
    cwd: from,
    stdio: 'pipe',
  })
  return from
}

const starts = '#!/bin/sh\nexit 0\n'

test('add installs a driver that starts, list shows it, and remove removes it', async () => {
  const folder = place()
  const data = join(folder, 'data')
  mkdirSync(data)
  const config = join(folder, 'hatchway.config.mjs')
  writeFileSync(config, `export default { data: 'data', agents: { driver: "concierge" } }\n`)
  const run = (...args: string[]) => node([bin, 'agents', ...args, '--config', config])

  const first = await run('add', 'claude', '--from', release(folder, { version: '1.0.0', program: starts }))
  expect(first).toMatchObject({ code: 0, err: '' })
  expect(first.out).toMatch(/^Claude is not free software: Anthropic’s terms apply to it\. https:\S+\n/)
  expect(first.out).toContain(
    `claude 1.0.0 is installed in ${join(data, 'drivers', 'claude', 'node_modules')}`,
  )
  expect(first.out).toContain(`agents.driver is claude in ${config}.`)
  expect(first.out).toContain('set ANTHROPIC_API_KEY where the host runs')
  expect(readFileSync(config, 'utf8')).toBe(`export default { data: 'data', agents: { driver: 'claude' } }\n`)
  // Sandboxes run as other users.
  for (const path of ['.', 'claude', 'claude/node_modules'])
    expect(statSync(join(data, 'drivers', path)).mode & 0o777).toBe(0o755)

  const broken = release(folder, { version: '2.0.0', program: '#!/bin/sh\necho wrong machine >&2\nexit 1\n' })
  expect(await run('add', 'claude', '--from', broken)).toMatchObject({
    code: 1,
    err: 'hatchway: Its program does not start on this machine: wrong machine\n',
  })
  const listed = await run('list', '--json')
  expect(JSON.parse(listed.out)).toContainEqual(
    expect.objectContaining({ driver: 'claude', installed: true, version: '1.0.0', in_use: true }),
  )

  await run('add', 'claude', '--from', release(folder, { version: '3.0.0', program: starts }))
  expect((await run('list')).out).toMatch(/claude +yes +installed, 3\.0\.0/)
  expect(readdirSync(join(data, 'drivers'))).toEqual(['claude'])

  expect(await run('remove', 'claude')).toMatchObject({ code: 0, err: '' })
  expect(existsSync(join(data, 'drivers', 'claude'))).toBe(false)
  expect(await run('remove', 'claude')).toMatchObject({
    code: 1,
    err: expect.stringContaining('not installed'),
  })
})

test.each([
  [
    'several drivers',
    `{ groups: { a: { driver: 'command', command: ['x'] } }, agents: { driver: 'concierge' } }`,
    `{ groups: { a: { driver: 'command', command: ['x'] } }, agents: { driver: 'claude' } }`,
  ],
  ['no driver', `{ agents: { assistant: 'Ada' } }`, `{ agents: { driver: 'claude', assistant: 'Ada' } }`],
  ['no agents', `{ timezone: 'UTC' }`, `{\n  agents: { driver: 'claude' }, timezone: 'UTC' }`],
  ['a driver of the environment', '{ agents: { driver: process.env.WHO } }', undefined],
])('add changes a configuration with %s, or says what to change', async (_, before, after) => {
  const folder = place()
  const config = join(folder, 'hatchway.config.mjs')
  writeFileSync(config, `export default ${before}\n`)
  const from = release(folder, { version: '1.0.0', program: starts })
  const options = ['--config', config, '--data', join(folder, 'data'), '--from', from]
  const { code, out } = await node([bin, 'agents', 'add', 'claude', ...options])
  expect(code).toBe(0)
  expect(out).toContain(
    after === undefined ? "  agents: { driver: 'claude' }," : `agents.driver is claude in ${config}.`,
  )
  expect(readFileSync(config, 'utf8')).toBe(`export default ${after ?? before}\n`)
})

test('add writes a configuration where there is none', async () => {
  const folder = place()
  const from = release(folder, { version: '1.0.0', program: starts })
  const inFolder = (...args: string[]) =>
    execFileSync(process.execPath, [bin, ...args], { cwd: folder, encoding: 'utf8' })
  expect(inFolder('agents', 'add', 'claude', '--from', from)).toContain('agents.driver is claude in')
  expect(inFolder('config')).toMatch(/agents\.driver +claude/)
})

test('what cannot be added is said', async () => {
  const data = place()
  const run = (...args: string[]) => node([bin, 'agents', ...args, '--data', data])
  expect(await run('add', 'gpt')).toMatchObject({
    code: 64,
    err: expect.stringContaining('concierge, assistant, claude'),
  })
  expect(await run('add', 'concierge')).toMatchObject({
    code: 1,
    err: 'hatchway: concierge comes with Hatchway. Installed apart are: claude.\n',
  })
  expect(await run('add', 'claude', '--from', data)).toMatchObject({
    code: 1,
    err: expect.stringContaining('There is no lock file'),
  })
})
