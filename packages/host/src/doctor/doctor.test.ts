import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { post } from '@hatchway/spool'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { openTelegram } from '../../../testing/src/channels/telegram/platform.ts'
import { configFor } from '../../../testing/src/daemon/in-process.ts'
import { temporaryFolder } from '../../../testing/src/folders.ts'
import { startDockerEngine } from '../../../testing/src/sandboxes/engines.ts'
import { usualSocket } from '../api/socket.ts'
import { send } from '../api/testing.ts'
import { examine } from '../assemble/examine.ts'
import { startDaemon } from '../assemble/main.ts'
import { registerGroups } from '../assemble/register.ts'
import { layoutOf } from '../base/layout.ts'
import type { ConfigInput } from '../config.ts'
import { definePlugin } from '../plugin-api/define.ts'

/** Everything that can be wrong is made wrong here, one thing at a time, and has to be found and explained. */
const isRoot = process.getuid?.() === 0

async function open(input: ConfigInput = {}) {
  const home = temporaryFolder('doctor')
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  const config = configFor(join(home, 'data'), { agents: { enabled: 'no' }, web: { port: 0 }, ...input })
  await registerGroups(config, [
    { folder: 'main', jid: 'web:main', name: 'Main', main: true, dialect: 'hatchway' },
    { folder: 'family', jid: 'web:family', name: 'Family', main: false, dialect: 'nanoclaw' },
  ])
  const layout = layoutOf(config.data)
  const check = (fix = false) => examine(config, { fix })
  return {
    home,
    config,
    layout,
    check,
    found: async (what: string, fix = false) => (await check(fix)).filter(finding => finding.what === what),
    change(sql: string) {
      const database = new DatabaseSync(layout.database)
      database.exec(sql)
      database.close()
    },
  }
}

test('a healthy host has nothing bad, with and without a daemon, and looking changes nothing', async () => {
  const { config, check } = await open()
  const seal = () =>
    readdirSync(config.data, { recursive: true, encoding: 'utf8' })
      .filter(name => !/daemon\.(lock|json)|hatchway\.db-/.test(name))
      .sort()
      .map(
        name =>
          `${name} ${lstatSync(join(config.data, name)).mode} ${lstatSync(join(config.data, name)).uid}`,
      )
  const before = seal()
  const alone = await check()
  expect(alone.filter(({ state }) => state === 'bad')).toEqual([])
  expect(alone).toContainEqual(expect.objectContaining({ what: 'daemon', says: 'None is running.' }))
  expect(seal()).toEqual(before)

  const daemon = await startDaemon(config)
  onTestFinished(() => daemon.stop())
  const beside = await check()
  expect(beside.filter(({ state }) => state === 'bad')).toEqual([])
  for (const [what, says] of [
    ['daemon', 'It runs, and answers.'],
    ['database', expect.stringContaining('It is whole')],
    ['channels', 'Every group’s chat is reached.'],
    ['services', expect.stringContaining('can be used')],
    ['mounts', 'Events arrive for all 2 groups.'],
  ])
    expect(beside).toContainEqual({ what, state: 'good', says })
  expect(readdirSync(layoutOf(config.data).state).filter(name => name.startsWith('backup-'))).toEqual([])
})

test('a channel that does not deliver is named, with what it said', async () => {
  const refusing = createHttpServer((_request, response) => void response.writeHead(503).end())
  await new Promise<void>(resolve => refusing.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void refusing.close())
  const address = refusing.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const { config, found } = await open({
    webhook: { url: `http://127.0.0.1:${port}/` },
  })
  vi.stubEnv('HATCHWAY_WEBHOOK_SECRET', 'a secret that is long enough')
  onTestFinished(() => void vi.unstubAllEnvs())
  await registerGroups(config, [
    { folder: 'hooked', jid: 'webhook:1', name: 'Hooked', main: false, dialect: 'hatchway' },
  ])
  const daemon = await startDaemon(config)
  onTestFinished(() => daemon.stop())
  post(
    join(layoutOf(config.data).ipc, 'hooked', 'messages'),
    JSON.stringify({ type: 'message', chatJid: 'webhook:1', text: 'hello' }),
    {},
  )
  await vi.waitFor(
    async () =>
      expect(await found('channels')).toContainEqual({
        what: 'channels',
        state: 'warning',
        says: expect.stringMatching(/^webhook could not deliver 1 of its messages.*503/),
      }),
    { timeout: 60_000 },
  )
})

test('a token that was revoked is told of, although nothing waits to be delivered', async () => {
  const platform = await openTelegram()
  onTestFinished(platform.close)
  const { config, found } = await open()
  const daemon = await startDaemon(config)
  onTestFinished(() => daemon.stop())
  await send({ socketPath: usualSocket(config.data) }, '/channels', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ kind: 'telegram', settings: platform.settings }),
  })
  const says = (state: string, text: RegExp) =>
    vi.waitFor(
      async () =>
        expect(await found('channels')).toContainEqual({
          ...{ what: 'channels', state, says: expect.stringMatching(text) },
        }),
      { timeout: 60_000 },
    )
  await says('good', /^telegram is connected\.$/)
  platform.revoke()
  await says('bad', /^telegram has not been connected since .*It last said: .*Copy it again from @BotFather/)
  const metrics = await send({ socketPath: usualSocket(config.data) }, '/metrics')
  expect(metrics.text).toContain('\nhatchway_channel_connected{channel="telegram"} 0\n')
  expect(metrics.text).toContain('\nhatchway_channel_limited{channel="telegram"} 0\n')
})

test('a directory that is new is no fault', async () => {
  const home = temporaryFolder('doctor')
  onTestFinished(() => rmSync(home, { recursive: true }))
  const findings = await examine(configFor(join(home, 'new'), { agents: { enabled: 'no' } }))
  expect(findings.filter(({ state }) => state === 'bad')).toEqual([])
  expect(existsSync(join(home, 'new'))).toBe(false)
})

describe('directories', () => {
  test('with a wrong mode are told of, and set right by --fix', async () => {
    const { layout, found } = await open()
    chmodSync(layout.state, 0o755)
    chmodSync(join(layout.ipc, 'main'), 0o777)
    expect(await found('modes')).toMatchObject([
      { state: 'bad', says: expect.stringContaining('state (755, should be 700)') },
    ])
    expect(await found('modes', true)).toMatchObject([{ fixed: 'set 2' }])
    expect(lstatSync(layout.state).mode & 0o777).toBe(0o700)
    expect(lstatSync(join(layout.ipc, 'main')).mode & 0o777).toBe(0o755)
    expect(await found('modes')).toMatchObject([{ state: 'good' }])
  })

  test.runIf(isRoot)('with a wrong owner are told of, and given back by --fix (needs root)', async () => {
    const { layout, found } = await open()
    chownSync(join(layout.ipc, 'family', 'tasks'), 0, 0)
    chownSync(layout.spool, 4711, 4711)
    const [before] = await found('owners')
    expect(before).toMatchObject({
      state: 'bad',
      says: expect.stringMatching(/spool \(uid 4711, not 0\).*tasks \(uid 0, not 1000\)/),
    })
    expect(await found('owners', true)).toMatchObject([{ fixed: 'set 2' }])
    expect(lstatSync(join(layout.ipc, 'family', 'tasks')).uid).toBe(1000)
    expect(lstatSync(layout.spool).uid).toBe(0)
    writeFileSync(join(layout.ipc, 'family', 'input', 'x.json'), '{}')
    expect(await found('files')).toMatchObject([
      { state: 'warning', says: expect.stringContaining('not uid 1000’s') },
    ])
  })

  test.runIf(isRoot)(
    'with a wrong owner in `.tmp` are told of, and given back by --fix (needs root)',
    async () => {
      const { home, layout, found } = await open()
      const messages = join(layout.ipc, 'family', 'messages')
      mkdirSync(join(messages, '.tmp'))
      writeFileSync(join(messages, '.tmp', 'half.tmp'), '')
      writeFileSync(join(home, 'precious'), 'x')
      symlinkSync(join(home, 'precious'), join(messages, '.tmp', 'link.tmp'))
      linkSync(join(home, 'precious'), join(messages, '.tmp', 'second-name.tmp'))
      expect(await found('files')).toMatchObject([
        { state: 'warning', says: expect.stringContaining(`${join(messages, '.tmp')} (not uid 1000’s)`) },
      ])
      expect(await found('files', true)).toMatchObject([{ fixed: 'gave 2 of 2 to their agents' }])
      expect(lstatSync(join(messages, '.tmp')).uid).toBe(1000)
      expect(lstatSync(join(messages, '.tmp', 'half.tmp')).uid).toBe(1000)
      expect(lstatSync(join(home, 'precious')).uid).toBe(0)
      expect(await found('files')).toEqual([])
    },
  )

  test.runIf(isRoot)(
    'of an earlier version, with what is in them, are given to a user for each group (needs root)',
    async () => {
      const { layout, found } = await open({ agents: { enabled: 'yes', sandbox: 'process' } })
      const [main, family] = ['main', 'family'].map(folder => lstatSync(join(layout.groups, folder)).uid)
      expect(main).not.toBe(family)
      writeFileSync(join(layout.groups, 'family', 'notes.md'), '')
      for (const path of ['', 'notes.md']) chownSync(join(layout.groups, 'family', path), 1000, 1000)
      expect(await found('owners')).toMatchObject([
        { state: 'bad', says: expect.stringContaining(`family (uid 1000, not ${family})`) },
      ])
      await found('owners', true)
      expect(lstatSync(join(layout.groups, 'family')).uid).toBe(family)
      expect(lstatSync(join(layout.groups, 'family', 'notes.md')).uid).toBe(family)
      expect(await found('owners')).toMatchObject([
        { state: 'good', says: expect.stringContaining('a user for each group') },
      ])
    },
  )

  test.runIf(isRoot)('that are mounted and closed to the group’s user are told of (needs root)', async () => {
    const open777 = temporaryFolder('open')
    const closed = temporaryFolder('closed')
    for (const path of [open777, closed]) onTestFinished(() => rmSync(path, { recursive: true }))
    chmodSync(open777, 0o777)
    const { found } = await open({
      groups: {
        family: {
          mounts: [
            { from: open777, to: 'open', writable: true },
            { from: closed, to: 'closed' },
          ],
        },
      },
    })
    const said = (await found('configuration'))
      .map(({ says }) => says)
      .filter(says => says.includes('setfacl'))
    expect(said).toEqual([expect.stringContaining(`cannot read ${closed}. Run: setfacl -R -m u:1000:rX`)])
  })

  test('that are missing are made by --fix', async () => {
    const { layout, found } = await open()
    rmSync(layout.files, { recursive: true })
    rmdirSync(join(layout.ipc, 'family', 'tasks'))
    expect(await found('missing')).toMatchObject([{ state: 'warning' }])
    expect(await found('missing', true)).toMatchObject([{ fixed: 'made 2 of them' }])
    expect(lstatSync(join(layout.ipc, 'family', 'tasks')).uid).toBe(isRoot ? 1000 : process.getuid?.())
    expect(await found('missing')).toMatchObject([{ state: 'good' }])
  })

  test('that were replaced by a link are bad, and --fix changes nothing behind it', async () => {
    const { home, layout, check } = await open()
    const outside = join(home, 'outside')
    mkdirSync(outside, { mode: 0o751 })
    const before = lstatSync(outside)
    rmdirSync(join(layout.ipc, 'family', 'tasks'))
    symlinkSync(outside, join(layout.ipc, 'family', 'tasks'))
    rmSync(layout.files, { recursive: true })
    symlinkSync(outside, layout.files)
    const findings = await check(true)
    expect(findings.find(({ what }) => what === 'directories')).toMatchObject({
      state: 'bad',
      says: expect.stringContaining('Somebody has replaced it'),
    })
    expect(lstatSync(outside)).toMatchObject({ uid: before.uid, mode: before.mode })
    expect(readdirSync(outside)).toEqual([])
  })
})

describe('what was left behind', () => {
  test('by a process that was killed is removed by --fix, and nothing behind a link', async () => {
    const { home, layout, found } = await open()
    mkdirSync(join(layout.state, 'backup-abc'))
    writeFileSync(join(layout.staging, 'half.json'), '{')
    writeFileSync(join(home, 'precious'), 'x')
    symlinkSync(home, join(layout.state, 'backup-link'))
    expect(await found('half-written')).toMatchObject([{ state: 'warning' }])
    expect(await found('half-written', true)).toMatchObject([{ fixed: 'removed 3' }])
    expect(readdirSync(layout.staging)).toEqual([])
    expect(readdirSync(layout.state).filter(name => name.startsWith('backup-'))).toEqual([])
    expect(existsSync(join(home, 'precious'))).toBe(true)
  })

  test('stays while a daemon is at work on it, unless it is old', async () => {
    const { config, layout, found } = await open()
    const daemon = await startDaemon(config)
    onTestFinished(() => daemon.stop())
    mkdirSync(join(layout.state, 'backup-new'))
    mkdirSync(join(layout.state, 'backup-old'))
    const twoDaysAgo = Date.now() / 1000 - 172_800
    utimesSync(join(layout.state, 'backup-old'), twoDaysAgo, twoDaysAgo)
    expect(await found('half-written', true)).toMatchObject([{ fixed: 'removed 1' }])
    expect(existsSync(join(layout.state, 'backup-new'))).toBe(true)
  })
})

describe('the database', () => {
  test('that is damaged is bad', async () => {
    const { layout, found } = await open()
    const bytes = new Uint8Array(4096).fill(0xa5)
    const { open: openFile } = await import('node:fs/promises')
    const file = await openFile(layout.database, 'r+')
    for (let page = 1; page < 12; page++) await file.write(bytes, 0, 4096, page * 4096)
    await file.close()
    expect(await found('database')).toMatchObject([
      { state: 'bad', says: expect.stringContaining('It is damaged') },
    ])
  })

  test('of another version, and an audit log that was changed, are told of', async () => {
    const { found, change } = await open()
    change(`DROP TRIGGER audit_no_change`)
    expect(await found('audit log')).toMatchObject([
      { state: 'bad', says: expect.stringContaining('audit_no_change is gone') },
    ])
    change('PRAGMA user_version = 99')
    expect(await found('database')).toMatchObject([
      { state: 'bad', says: expect.stringContaining('newer Hatchway') },
    ])
  })

  test('with entries of the future means that the clock is wrong', async () => {
    const { found, change } = await open()
    change(
      `INSERT INTO messages (id, group_folder, jid, kind, text, status, attempts, next_attempt_at, created_at)
       VALUES (1, 'main', 'web:main', 'text', 'x', 'failed', 12, 0, ${Date.now() + 7_200_000})`,
    )
    expect(await found('clock')).toMatchObject([
      { state: 'bad', says: expect.stringContaining('2 hours in the future') },
    ])
    expect(await found('messages')).toMatchObject([
      { state: 'warning', says: expect.stringContaining('1 could not be delivered') },
    ])
  })

  test('is left alone where somebody has it who does not answer', async () => {
    const { config, found } = await open()
    const { acquire } = await import('../base/lock.ts')
    const lock = await acquire(config.data)
    onTestFinished(() => lock.release())
    expect(await found('daemon')).toMatchObject([
      { state: 'bad', says: expect.stringContaining('does not answer') },
    ])
  })
})

test('files that were refused wait to be looked at', async () => {
  const { layout, found } = await open()
  writeFileSync(join(layout.errors, 'main-e.1-x.json.error.json'), '{}')
  expect(await found('errors')).toMatchObject([
    { state: 'warning', says: expect.stringContaining('1 refused files wait') },
  ])
})

test('a token that others can read is bad, and --fix closes it', async () => {
  const { layout, found } = await open()
  writeFileSync(join(layout.state, 'web-token'), 'x', { mode: 0o644 })
  expect(await found('web token')).toMatchObject([{ state: 'bad' }])
  expect(await found('web token', true)).toMatchObject([{ fixed: 'set its mode to 600' }])
  expect(lstatSync(join(layout.state, 'web-token')).mode & 0o777).toBe(0o600)
})

test('a port that is taken is told of', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await new Promise(resolve => server.once('listening', resolve))
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  const { found } = await open({ web: { port } })
  expect(await found('web')).toMatchObject([
    { state: 'warning', says: expect.stringContaining(`Port ${port} is taken`) },
  ])
})

test('a port that another program answers is not taken for the console’s', async () => {
  const other = createServer(socket => socket.end('hello')).listen(0, '127.0.0.1')
  onTestFinished(() => void other.close())
  await new Promise(resolve => other.once('listening', resolve))
  const address = other.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  const { config, found } = await open({ web: { port } })
  const daemon = await startDaemon(config)
  onTestFinished(() => daemon.stop())
  expect(await found('web')).toMatchObject([
    {
      state: 'warning',
      says: expect.stringContaining(
        `Port ${port} was another program’s when the daemon began; the console is on port ${daemon.web?.port}.`,
      ),
    },
  ])
})

test('the console’s own port is known for it', async () => {
  const { config, found } = await open()
  const daemon = await startDaemon(config)
  onTestFinished(() => daemon.stop())
  expect(await found('web')).toMatchObject([
    { state: 'good', says: `The console answers on port ${daemon.web?.port}.` },
  ])
})

test('what the configuration names and is not there is told of', async () => {
  const home = temporaryFolder('named')
  onTestFinished(() => rmSync(home, { recursive: true }))
  execFileSync('git', ['init', '--quiet', '--initial-branch=main', join(home, 'empty')])
  mkdirSync(join(home, 'plain'))
  writeFileSync(join(home, 'broken.ts'), 'export default 7')
  const { found } = await open({
    agents: { enabled: 'yes', driver: 'claude', sandbox: 'process' },
    model: { keyVariable: 'HATCHWAY_TEST_NO_SUCH_KEY' },
    webhook: { url: 'http://127.0.0.1:9/', secretVariable: 'HATCHWAY_TEST_NO_SUCH_SECRET' },
    calendars: {
      home: {
        url: 'https://example.org',
        username: 'me',
        passwordVariable: 'HATCHWAY_TEST_NO_SUCH_PASSWORD',
      },
    },
    groups: {
      nobody: { driver: 'command' },
      main: { mounts: [{ from: '/srv/photos', to: 'photos' }] },
    },
    services: { plugins: [join(home, 'broken.ts')] },
    repos: {
      gone: { path: join(home, 'gone') },
      plain: { path: join(home, 'plain') },
      empty: { path: join(home, 'empty') },
    },
    hostJobs: { enabled: 'yes', directories: [join(home, 'gone')], users: ['nobody-of-this-name'] },
    deploy: { enabled: 'yes', directory: join(home, 'empty') },
  })
  const says = (await found('configuration')).map(finding => finding.says).join('\n')
  for (const part of [
    'HATCHWAY_TEST_NO_SUCH_KEY is not set here, and the model needs it',
    'HATCHWAY_TEST_NO_SUCH_SECRET is not set here, and webhooks needs it',
    'HATCHWAY_TEST_NO_SUCH_PASSWORD is not set here, and the calendar home needs it',
    'settings for nobody, and no such group is registered',
    'nobody: the driver `command` needs `command`',
    'groups.main: Mounts are configured, but no list allows them',
    'has no service as its default export',
    'repos.gone:',
    'plain is not a git repository',
    'empty has no branch main',
    'hostJobs.directories:',
    'this machine has no user nobody-of-this-name',
    'is not a git checkout with a commit',
  ])
    expect(says).toContain(part)
})

test('a plugin’s checks see its settings; one that fails is told of and hides nothing', async () => {
  const load = async () => ({ open: () => ({}) })
  const settings = z.strictObject({ city: z.string() })
  const weather = definePlugin({
    name: 'weather',
    version: '1.0.0',
    settings,
    checks: async () => ({
      checks: [
        {
          name: 'reach',
          run: () => {
            throw new Error('no route to the sky')
          },
        },
        {
          name: 'city',
          run: context => [{ what: 'weather', state: 'warning', says: `${context.settings.city} is windy.` }],
        },
      ],
    }),
    load,
  })
  const unloadable = definePlugin({
    name: 'unloadable',
    version: '1.0.0',
    settings: z.strictObject({}),
    checks: () => Promise.reject(new Error('cannot be parsed')),
    load,
  })
  const { check } = await open({ plugins: [weather({ city: 'Lisbon' }), unloadable()] })
  const findings = await check()
  expect(findings).toContainEqual({ what: 'weather', state: 'warning', says: 'Lisbon is windy.' })
  expect(findings).toContainEqual({
    what: 'plugin weather',
    state: 'bad',
    says: 'Its check `reach` failed: no route to the sky',
  })
  expect(findings).toContainEqual({
    what: 'plugin unloadable',
    state: 'bad',
    says: 'Its checks could not be loaded: cannot be parsed',
  })
  expect(findings).toContainEqual(expect.objectContaining({ what: 'configuration', state: 'good' }))
})

describe('the model from a configured image', () => {
  test('is tried from inside, also where the image holds no program, without a word to the provider', async () => {
    const engine = await startDockerEngine()
    if (!engine) return expect.unreachable('This test needs Docker (dockerd and docker, as root).')
    onTestFinished(() => engine.stop())
    const asked: unknown[] = []
    const provider = createHttpServer((request, response) => {
      asked.push(request.url)
      response.end()
    })
    await new Promise<void>(resolve => provider.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void provider.close())
    const address = provider.address()
    const port = typeof address === 'object' ? address?.port : undefined
    const { home, check } = await open({
      agents: { sandbox: 'docker', image: 'localhost/empty:latest', driver: 'claude' },
      groups: { later: { image: 'localhost/missing:latest' } },
      model: { url: `http://127.0.0.1:${port}` },
    })
    writeFileSync(join(home, 'readme'), 'no program is in here')
    execFileSync('tar', ['--create', '--file', join(home, 'empty.tar'), '-C', home, 'readme'])
    expect(await engine.ask('import', join(home, 'empty.tar'), 'localhost/empty:latest')).toMatchObject({
      code: 0,
    })
    vi.stubEnv('DOCKER_HOST', engine.options.environment?.DOCKER_HOST ?? '')
    vi.stubEnv('ANTHROPIC_API_KEY', 'sk-of-the-host')
    onTestFinished(() => void vi.unstubAllEnvs())
    const findings = (await check()).filter(({ what }) => what.startsWith('model from image'))
    expect(findings).toEqual([
      {
        what: 'model from image localhost/missing:latest (docker)',
        state: 'bad',
        says: expect.stringContaining('Run: docker pull localhost/missing:latest'),
      },
      {
        what: 'model from image localhost/empty:latest (docker)',
        state: 'good',
        says: expect.stringMatching(/^reachable on 127\.0\.0\.1:7711/),
      },
      {
        what: 'model from image localhost/empty:latest (docker)',
        state: 'good',
        says: expect.stringMatching(/^reachable by its socket/),
      },
    ])
    expect(asked).toEqual([])
    expect((await engine.ask('ps', '--all', '--quiet')).stdout).toBe('')
  }, 120_000)
})
