import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { usualSocket } from '../../host/src/api/socket.ts'
import { launch } from '../src/daemon/process.ts'
import { temporaryFolder } from '../src/folders.ts'
import { hatchwayProgram, projectRoot } from '../src/paths.ts'
import { until } from '../src/until.ts'

/**
 * Plugins outside of the repository, written from docs/extending.md alone: this test copies the page's examples into an
 * empty folder, type-checks them there, and uses them in a daemon as people start it.
 */
const run = promisify(execFile)
const folder = temporaryFolder('outside-plugin')
let data = join(folder, 'data')
const socket = join(folder, 'desk.sock')
const env = { HATCHWAY_CONFIG: join(folder, 'hatchway.config.ts'), HATCHWAY_LINES_SOCKET: socket }

beforeAll(() => {
  const page = readFileSync(join(projectRoot, 'docs', 'extending.md'), 'utf8')
  const blocks = [...page.matchAll(/```ts file=(\S+)\n([\s\S]*?)```/g)]
  expect(blocks.map(([, name]) => name)).toEqual(['dice.ts', 'lines.ts', 'bell.ts', 'hatchway.config.ts'])
  for (const [, name = '', code = ''] of blocks) writeFileSync(join(folder, name), code)
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
  symlinkSync(join(projectRoot, 'node_modules'), join(folder, 'node_modules'))
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function up(more: Record<string, string> = {}) {
  const daemon = launch(data, { env: { ...env, ...more }, args: ['--create-main'] })
  onTestFinished(() => daemon.kill())
  await daemon.ready
  return daemon
}

/** A command of hatchway, and what it prints. */
async function hatchway(...args: string[]): Promise<{ ok: boolean; text: string }> {
  const all = [hatchwayProgram, ...args, '--data', data]
  const { code, stdout, stderr } = await run(process.execPath, all, { env: { ...process.env, ...env } }).then(
    printed => ({ code: 0, ...printed }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  )
  return { ok: code === 0, text: `${stdout}${stderr}` }
}

const post = (group: string, type: string, payload: object, id?: string) =>
  hatchway(
    ...['post', '--group', group, '--type', type, '--payload', JSON.stringify(payload), '--wait', '--json'],
    ...(id === undefined ? [] : ['--id', id]),
  )

test('a service, with its settings', async () => {
  await up()
  const rolled = await post('main', 'call_service', { tool: 'roll_dice', arguments: { dice: 3 } })
  expect(rolled.text).toMatch(/"shown":\s*\[\s*\d,\s*\d,\s*\d\s*\]/)
  const tooMany = await post('main', 'call_service', { tool: 'roll_dice', arguments: { dice: 6 } })
  expect(tooMany).toMatchObject({ ok: false })
  expect(tooMany.text).toContain('invalid_field')
})

test('a command has a permission of its own, its own tables and its own route', async () => {
  await up()
  await hatchway('groups', 'add', '--folder', 'family', '--jid', 'web:family', '--name', 'Family')
  expect((await post('main', 'bell.ring', { times: 2 })).text).toMatch(/"rang":\s*2/)
  expect((await post('main', 'bell.ring', { times: 9 })).text).toContain('quota_exceeded')
  expect((await post('main', 'bell.ring', { times: 1, loud: true })).text).toContain('invalid_field')
  expect((await post('main', 'bell.sing', {})).text).toContain('unknown_type')
  expect((await post('family', 'bell.ring', { times: 1 })).text).toContain('forbidden')
  expect(await bellRows()).toEqual([{ day: expect.any(String), times: 2 }])
})

test('a channel: what people say comes in, what agents say goes out', async () => {
  await up()
  const person = connect(socket)
  onTestFinished(() => void person.destroy())
  await once(person, 'connect')
  const lines: string[] = []
  createInterface({ input: person }).on('line', line => lines.push(line))
  person.write('is anybody there?\n')
  await until(() => lines.some(line => line.startsWith('!')))
  await hatchway('groups', 'add', '--folder', 'desk', '--jid', 'lines:desk', '--name', 'Desk')
  await post('desk', 'send_message', { text: 'hello desk' })
  await until(() => lines.includes('hello desk'))
})

test('a killed daemon rings no bell twice, and forgets none', async () => {
  const first = await up()
  const before = await rings()
  const ids = Array.from({ length: 12 }, (_, i) => `ring-${i}`)
  const answers = Promise.all(ids.map(id => post('main', 'bell.ring', { times: 1 }, id)))
  await until(async () => (await rings()) > before)
  await first.kill()
  await up()
  for (const { text } of await answers) expect(text).toMatch(/"rang":\s*1/)
  expect(await rings()).toBe(before + ids.length)
})

test('the guard holds its command, a person is shown all of it, and what they allow is executed once', async () => {
  // Of its own: what a group has read, it has read for good.
  data = join(folder, 'guarded')
  const config = join(folder, 'guarded.config.ts')
  writeFileSync(
    config,
    `import { defineConfig } from 'hatchway/config'
     import page from './hatchway.config.ts'
     export default defineConfig({
       ...page,
       groups: { main: { containsSecrets: true } },
       guard: { labels: { roll_dice: { public_source: 'yes' } } },
     })`,
  )
  await up({ HATCHWAY_CONFIG: config })
  // Its group knows secrets, and has read a stranger's words from here on.
  expect(await post('main', 'call_service', { tool: 'roll_dice', arguments: {} })).toMatchObject({ ok: true })

  const held = post('main', 'bell.ring', { times: 3 })
  const waiting = z.array(z.object({ id: z.string(), group: z.string() }))
  let asked: z.infer<typeof waiting> = []
  await until(async () => {
    asked = waiting.parse(JSON.parse((await hatchway('approvals', 'list', '--json')).text))
    return asked.length === 1
  })
  expect(await bellRows()).toEqual([])
  const id = String(asked[0]?.id)
  const card = await hatchway('approvals', 'show', id)
  expect(card.text).toContain('ring the bell 3 times')
  expect(card.text).toMatch(/│ times: 3/)

  expect(await hatchway('approvals', 'allow', id)).toMatchObject({ ok: true })
  expect((await held).text).toMatch(/"rang":\s*3/)
  expect(await hatchway('approvals', 'allow', id)).toMatchObject({ ok: false })
  expect(await bellRows()).toEqual([{ day: expect.any(String), times: 3 }])
})

async function rings(): Promise<number> {
  return (await bellRows()).reduce((sum, { times }) => sum + times, 0)
}

async function bellRows(): Promise<{ day: string; times: number }[]> {
  const request = get({ socketPath: usualSocket(data), path: '/plugins/bell/rings', agent: false })
  const [response] = await once(request, 'response')
  return z.array(z.object({ day: z.string(), times: z.number() })).parse(JSON.parse(await text(response)))
}
