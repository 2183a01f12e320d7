import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { reachOfLabels, taintOfLabels } from '../../guard/gates.ts'
import { createManager, type LentServerManager } from './manager.ts'
import { lentServersSchema } from './settings.ts'
import { filesystemServer, oddServer } from './testing/rig.ts'

const log = pino({ level: 'silent' })

/** A folder for added servers, and a host on it that can be started again. */
async function openHost(configured: object = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'lent-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const staging = mkdtempSync(join(folder, 'staging-'))
  const begin = async (): Promise<LentServerManager> => {
    const manager = createManager({
      configured: lentServersSchema.parse(configured),
      folder: () => folder,
      staging,
      environment: process.env,
      version: '1.0.0',
      isDaemon: true,
      signal: new AbortController().signal,
      leaveFile: async () => '',
      log,
      timing: { graceMs: 1000 },
    })
    await manager.service.start?.({ changed: () => changed?.(), log })
    onTestFinished(() => manager.service.stop?.())
    return manager
  }
  let changed: (() => void) | undefined
  const lent = (manager: LentServerManager, count: number) =>
    new Promise<void>(resolve => {
      changed = () => manager.service.tools().length === count && resolve()
      changed()
    })
  const kept = () => readdirSync(folder).filter(name => name.endsWith('.json'))
  return { folder, manager: await begin(), begin, lent, kept }
}

const files = { command: [process.execPath, filesystemServer, tmpdir()] }
const nothing = { internet: false, private: false }
const labelsOf = (manager: LentServerManager, name: string) =>
  manager.service.tools().find(tool => tool.name === name)?.labels ?? {}

test('a server that was added is lent at once and after a restart, with labels from two answers and its own hints', async () => {
  const { folder, manager, begin, lent, kept } = await openHost()
  const tried = await manager.try('files', files)
  expect(tried).toMatchObject({ ok: true, suggestion: { internet: false, private: true } })
  expect(kept()).toEqual([])
  const added = await manager.add('files', files, nothing)
  if (!added.ok) throw new Error(added.error.message)
  const count = added.lending.tools.length
  await lent(manager, count)
  expect(statSync(join(folder, 'files.server.json')).mode & 0o777).toBe(0o600)

  // What only reads, of a local server without private data, is let through whatever the conversation has read.
  const reading = labelsOf(manager, 'files_read_text_file')
  expect([reachOfLabels(reading), taintOfLabels(reading)]).toEqual([
    'local',
    { corrupted: false, secret: false },
  ])
  expect(reachOfLabels(labelsOf(manager, 'files_write_file'))).toBe('dangerous')

  await manager.service.stop?.()
  const again = await begin()
  await lent(again, count)
  expect(again.list()).toMatchObject([{ name: 'files', isAdded: true, state: { ok: true } }])
  expect(await again.remove('files')).toEqual({ ok: true, removed: true })
  expect([again.service.tools(), kept()]).toEqual([[], []])
})

test('what reaches the internet or holds private data is labelled so, whatever it says of itself', async () => {
  const { manager, lent } = await openHost()
  const added = await manager.add('files', files, { internet: true, private: true })
  if (!added.ok) throw new Error(added.error.message)
  await lent(manager, added.lending.tools.length)
  const reading = labelsOf(manager, 'files_read_text_file')
  expect([reachOfLabels(reading), taintOfLabels(reading)]).toEqual([
    'sink',
    { corrupted: true, secret: true },
  ])
  expect(reachOfLabels(labelsOf(manager, 'files_write_file'))).toBe('both')
})

test('a tool that a server lists later is not lent before somebody has looked at it', async () => {
  const { folder, manager, lent } = await openHost()
  const flag = join(folder, 'more')
  const growing = {
    command: [
      process.execPath,
      '-e',
      `
      const tools = [{ name: 'one', inputSchema: { type: 'object' } }]
      if (require('node:fs').existsSync(${JSON.stringify(flag)})) tools.push({ name: 'two', inputSchema: { type: 'object' } })
      require('node:readline').createInterface({ input: process.stdin }).on('line', line => {
        const { id, method } = JSON.parse(line)
        const result = method === 'initialize'
          ? { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'g', version: '1' } }
          : { tools }
        if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))
      })`,
    ],
  }
  expect(await manager.try('growing', growing)).toMatchObject({ ok: true })
  writeFileSync(flag, '')
  // What counts is what was shown.
  await manager.add('growing', growing, nothing)
  await lent(manager, 1)
  expect(await manager.test('growing')).toMatchObject({ lending: { tools: [{ remoteName: 'one' }] } })
  await manager.add('growing', growing, nothing)
  await lent(manager, 2)
})

test('what cannot be added says why, and nothing is kept', async () => {
  const { folder, manager, kept } = await openHost({ mine: { command: [process.execPath, oddServer] } })
  const failure = async (name: string, settings: unknown) => {
    const outcome = await manager.add(name, settings, nothing)
    return outcome.ok ? undefined : outcome.error
  }
  expect(await failure('mine', files)).toMatchObject({ code: 'conflict' })
  expect(await failure('../../x', files)).toMatchObject({ code: 'invalid_field' })
  expect(await failure('x', { command: 'a', url: 'https://example.com' })).toMatchObject({
    code: 'invalid_field',
  })
  expect(await failure('x', { command: '/no/such/program' })).toMatchObject({
    code: 'service_failed',
    message: 'The server x could not be started.\nThere is no program /no/such/program.',
  })
  expect(await failure('x', { ...files, env: { KEY: { variable: 'NO_SUCH_KEY' } } })).toMatchObject({
    message: expect.stringContaining('no variable NO_SUCH_KEY'),
  })
  writeFileSync(join(folder, 'broken.server.json'), '{')
  expect(manager.list().at(-1)).toMatchObject({ name: 'broken', state: { ok: false } })
  expect(await manager.remove('broken')).toEqual({ ok: true, removed: true })
  expect(await manager.remove('mine')).toMatchObject({ ok: false, error: { code: 'wrong_state' } })
  expect(await manager.remove('../../x')).toEqual({ ok: true, removed: false })
  expect(await manager.test('nothing')).toMatchObject({ ok: false, error: { code: 'not_found' } })
  expect(kept()).toEqual([])
})
