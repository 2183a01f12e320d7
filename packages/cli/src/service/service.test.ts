import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createPrograms, type Machine, thisMachine } from './machine.ts'
import { findManager } from './manager.ts'
import { installService, planService, removeService } from './set-up.ts'
import { openHome, quietEnvironment } from './testing.ts'
import { dataIn, launchdPlist, systemdUnit, type UnitContent } from './texts.ts'

const project = join(import.meta.dirname, '../../../..')
const bin = join(project, 'packages/cli/bin/hatchway.mjs')
const isLinux = process.platform === 'linux'

const example: UnitContent = {
  name: 'hatchway',
  node: '/opt/hatchway/node_modules/.bin/node',
  program: '/opt/hatchway/packages/cli/bin/hatchway.mjs',
  data: '/srv/hatchway',
  config: undefined,
  directory: '/opt/hatchway',
  environmentFile: '/etc/hatchway/environment',
  user: 'hatchway',
  clone: '/opt/hatchway',
  logFile: '',
}
const onMac: UnitContent = {
  ...example,
  data: '/Users/me/hatchway',
  environmentFile: '/Users/me/.config/hatchway/environment',
  user: undefined,
  logFile: '/Users/me/Library/Logs/hatchway.log',
}
const odd = '/srv/a "b" 100% $HOME \\ & <c>'

test('the units of the repository are what the command writes', () => {
  const unit = readFileSync(join(project, 'units/hatchway.service'), 'utf8')
  expect(unit.slice(unit.indexOf('[Unit]'))).toBe(systemdUnit(example))
  const plist = readFileSync(join(project, 'units/org.hatchway.daemon.plist'), 'utf8')
  expect(plist.replace(/<!--\n[\s\S]*?-->\n/, '')).toBe(launchdPlist(onMac))
})

test('a unit names its data directory, whatever that is called, and no second line', () => {
  for (const data of ['/srv/hatchway', odd])
    for (const text of [systemdUnit({ ...example, data }), launchdPlist({ ...onMac, data })])
      expect(dataIn(text)).toBe(data)
  expect(() => systemdUnit({ ...example, data: '/srv/x\nUser=root' })).toThrow('cannot stand in a unit')
})

const has = (program: string) => {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' })
    return true
  } catch (error) {
    if (error instanceof Error) return false
    throw error
  }
}

const analyze = 'systemd-analyze'

test.skipIf(!has(analyze)).each([['system'], ['user']])(
  'systemd understands the unit of a %s service in odd directories (needs systemd-analyze)',
  scope => {
    const { home } = openHome()
    const directory = join(home, 'a "b" 100% $HOME \\')
    mkdirSync(directory)
    const program = join(directory, 'hatchway')
    writeFileSync(program, '', { mode: 0o755 })
    const file = join(home, 'hatchway.service')
    // systemd takes no such name for the program itself, which is Node.
    const paths = {
      node: process.execPath,
      program,
      data: directory,
      directory,
      config: join(directory, 'config.ts'),
    }
    const user = scope === 'system' ? 'root' : undefined
    writeFileSync(file, systemdUnit({ ...example, ...paths, user, clone: undefined }))
    expect(execFileSync(analyze, ['verify', '--man=no', file], { encoding: 'utf8' })).toBe('')
  },
)

test.skipIf(!has('python3'))('a plist is XML that a parser of plists reads back (needs python3)', () => {
  const read = 'import json, plistlib, sys; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))'
  const parsed: unknown = JSON.parse(
    execFileSync('python3', ['-c', read], {
      input: launchdPlist({ ...onMac, data: odd, user: 'me', config: '/etc/h.ts' }),
      encoding: 'utf8',
    }),
  )
  expect(parsed).toMatchObject({
    Label: 'org.hatchway.daemon',
    UserName: 'me',
    ProgramArguments: [
      onMac.node,
      `--env-file-if-exists=${onMac.environmentFile}`,
      onMac.program,
      'supervise',
    ],
    EnvironmentVariables: { HATCHWAY_DATA: odd, HATCHWAY_CONFIG: '/etc/h.ts' },
    KeepAlive: true,
  })
})

test.runIf(isLinux)('a person’s service is installed, updated, shown and removed', async () => {
  const { home, here, data, run, calls } = openHome()
  const hatchway = (...args: string[]) => run(process.execPath, bin, ...args)
  const unit = join(home, '.config/systemd/user/hatchway.service')
  const common = ['--user', '--data', data]

  const printed = await hatchway('service', 'install', ...common, '--print')
  expect(printed.out).toContain(`Environment=HATCHWAY_DATA=${data}`)
  expect(existsSync(unit)).toBe(false)
  expect(calls()).toEqual([])

  const first = await hatchway('service', 'install', ...common)
  expect(first).toMatchObject({ code: 0, err: '' })
  expect(readFileSync(unit, 'utf8')).toBe(printed.out)
  const started = [
    'loginctl enable-linger',
    'systemctl --user daemon-reload',
    'systemctl --user enable hatchway.service',
    'systemctl --user restart hatchway.service',
  ]
  expect(calls()).toEqual(started)
  for (const call of started) expect(first.out).toContain(`$ ${call}\n`)
  expect(first.out).toContain(`Wrote ${unit}`)
  expect(statSync(join(home, '.config/hatchway/environment')).mode & 0o777).toBe(0o600)
  const [link = ''] = /http:\S+\?token=\S+/.exec(first.out) ?? []
  expect(await fetch(link, { redirect: 'manual' }).then(({ status }) => status)).toBeLessThan(400)

  const again = await hatchway('service', 'install', ...common)
  expect(again).toMatchObject({ code: 0, out: expect.stringContaining('Nothing to do') })
  expect(calls()).toEqual([])

  const status = JSON.parse((await hatchway('service', 'status', '--json')).out)
  expect(status).toMatchObject({
    scope: 'user',
    installed: true,
    enabled: true,
    running: true,
    since: '2026-11-18T05:13:10Z',
    last_exit: 'exit code 7 at 2026-11-17T23:00:00Z',
    daemon: { ready: true, link },
  })
  expect((await hatchway('service', 'status')).out).toMatch(/^running +since 2026-11-18 05:13:10$/m)
  expect(await hatchway('open', '--print')).toMatchObject({ code: 0, out: `${link}\n` })

  calls()
  const opened = await run('env', 'DISPLAY=:0', process.execPath, bin, 'open')
  expect(opened).toMatchObject({ code: 0, out: `${link}\n` })
  await vi.waitFor(() => expect(calls()).toEqual([`xdg-open ${link}`]), { timeout: 20_000 })

  writeFileSync(unit, `${printed.out}# changed\n`)
  expect(await hatchway('service', 'install', ...common, '--json')).toMatchObject({ code: 0, err: '' })
  expect(calls()).toEqual(['systemctl --user daemon-reload', 'systemctl --user restart hatchway.service'])

  for (const command of [['logs'], ['service', 'logs']]) {
    const { code, out } = await hatchway(...command, '-n', '5')
    expect(code).toBe(0)
    expect(out).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d INFO {2}\S/m)
    expect(out).toContain('hatchway is ready on')
  }
  const journal = 'journalctl --user-unit=hatchway.service --output=cat --no-pager --lines=5'
  expect(calls()[0]).toBe(journal)
  // The stand-in ends where the real one would wait for more.
  expect(await hatchway('logs', '-f', '-n', '5')).toMatchObject({ code: 0 })
  expect(calls()).toEqual([`${journal} --follow`])
  const raw = (await hatchway('logs', '--json')).out.trimEnd().split('\n')
  expect(raw.map((line): unknown => JSON.parse(line))).toContainEqual(expect.objectContaining({ level: 30 }))
  calls()

  const removed = await hatchway('service', 'remove')
  expect(removed).toMatchObject({ code: 0, out: expect.stringContaining(`Your data in ${data}`) })
  expect(calls()).toEqual([
    'systemctl --user disable --now hatchway.service',
    'systemctl --user daemon-reload',
  ])
  expect([existsSync(unit), existsSync(join(data, 'state')), existsSync(join(here, 'hatchway.pid'))]).toEqual(
    [false, true, false],
  )
  expect(await hatchway('service', 'remove')).toMatchObject({ code: 1 })
  expect(JSON.parse((await hatchway('service', 'status', '--data', data, '--json')).out)).toMatchObject({
    installed: false,
    running: false,
    daemon: null,
  })
})

test.runIf(isLinux)('what stands in the way of a service is said with what to do', async () => {
  const { home, here, data, env, run } = openHome()
  const hatchway = (...args: string[]) => run(process.execPath, bin, ...args)
  const install = (...args: string[]) => hatchway('service', 'install', '--data', data, ...args)
  const refused = (err: string, code = 1) => ({ code, err: expect.stringContaining(err) })
  expect(await install('--user', '--system')).toMatchObject(refused('Choose one', 64))
  expect(await install('--user', '--run-as', 'root')).toMatchObject(refused('--run-as is for', 64))
  expect(await install('--name', '../x')).toMatchObject(refused('--name', 64))
  expect(await install('--system', '--run-as', 'no-such-user')).toMatchObject(refused('useradd --system'))
  expect(await hatchway('service', 'install', '--user', '--data', join(home, 'none'))).toMatchObject(
    refused('hatchway init'),
  )
  expect(await hatchway('logs', '--data', data)).toMatchObject(refused('hatchway service install'))
  expect(await hatchway('open', '--data', data)).toMatchObject(refused('No daemon runs'))

  const own = findManager({ user: true, system: undefined, name: undefined }, { ...thisMachine(), home })
  const said: string[] = []
  const report = async (line: string) => void said.push(line)
  writeFileSync(join(here, 'no-linger'), '')
  await own.prepare(await createPrograms(env, report), report)
  expect(said.at(-1)).toMatch(/Access denied.*Have root run: loginctl enable-linger \S+$/)

  writeFileSync(join(here, 'systemctl'), '#!/bin/sh\necho offline; exit 1\n')
  const outside = await install('--user')
  expect(outside).toMatchObject(refused('hatchway supervise'))
  expect(existsSync(/use (\S+docker-compose\.yml);/.exec(outside.err)?.[1] ?? '')).toBe(true)

  const machine: Machine = { platform: 'linux', uid: 1000, home, root: home, env }
  const programs = await createPrograms(env, async () => {})
  const manager = { ...findManager({ user: undefined, system: true, name: undefined }, machine) }
  const plan = { text: '', data, owner: { uid: 0, gid: 0 }, hasConsole: false }
  await expect(
    installService(plan, { ...manager, problem: async () => undefined }, machine, programs, {
      report: async () => {},
      seconds: 1,
    }),
  ).rejects.toThrow('needs root')
  expect(() =>
    findManager({ user: true, system: undefined, name: undefined }, { ...machine, platform: 'other' }),
  ).toThrow('hatchway supervise')
})

test.runIf(isLinux)(
  'a system service runs as the owner of its data, and as root only if that is said',
  async () => {
    const { home, data, env } = openHome()
    const machine: Machine = { platform: 'linux', uid: 0, home, root: home, env }
    const programs = await createPrograms(env, async () => {})
    const manager = findManager({ user: undefined, system: undefined, name: 'second' }, machine)
    expect(manager.file).toBe(join(home, 'etc/systemd/system/second.service'))
    const installation = {
      node: '/n',
      program: '/p',
      directory: '/d',
      version: '1.0.0',
      kind: 'npm',
    } as const
    const plan = (runAs?: string) => planService({ data, runAs }, manager, programs, installation)
    const { uid } = statSync(data)
    if (uid === 0) {
      await expect(plan()).rejects.toThrow('belongs to root')
      await expect(plan('daemon')).rejects.toThrow(`chown -R daemon: ${data}`)
    }
    const name = execFileSync('id', ['-un'], { encoding: 'utf8' }).trim()
    const { text } = await plan(uid === 0 ? 'root' : undefined)
    expect(text).toContain(`User=${name}\n`)
    expect(text).toContain(`EnvironmentFile=-${join(home, 'etc/second/environment')}\n`)
    expect(text).toContain('ProtectSystem=strict')
  },
)

test.runIf(isLinux)(
  'a daemon that is not the service is not disturbed, and its log is found and followed if it is a file',
  async () => {
    const { home, data, env, run } = openHome()
    const hatchway = (...args: string[]) => run(process.execPath, bin, ...args, '--data', data)
    const log = join(home, 'daemon.log')
    const daemon = run(
      'sh',
      '-c',
      `set -a; . .config/hatchway/environment; exec "$0" "$1" up --data "$2" >> "$3" 2>&1`,
      process.execPath,
      bin,
      data,
      log,
    )
    await vi.waitFor(async () => expect(await hatchway('open', '--print')).toMatchObject({ code: 0 }), {
      timeout: 30_000,
    })
    const { out } = await hatchway('status', '--json')
    const { status } = JSON.parse(out)
    expect(await hatchway('service', 'install', '--user')).toMatchObject({
      code: 1,
      err: expect.stringContaining(`kill ${status.pid}`),
    })
    expect(await hatchway('logs')).toMatchObject({
      code: 0,
      out: expect.stringContaining('hatchway is ready on'),
    })

    const follower = spawn(process.execPath, [bin, 'logs', '-f', '--data', data], {
      env,
      cwd: home,
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const closed = once(follower, 'close')
    onTestFinished(() => void follower.kill('SIGKILL'))
    let followed = ''
    follower.stdout.setEncoding('utf8').on('data', text => {
      followed += text
    })
    await vi.waitFor(() => expect(followed).toContain('hatchway is ready on'), { timeout: 20_000 })
    expect(followed).not.toContain('a line that came later')
    const later = { level: 40, time: Date.UTC(2026, 10, 18), msg: 'a line that came later' }
    appendFileSync(log, `${JSON.stringify(later)}\n`)
    await vi.waitFor(() => expect(followed).toContain('2026-11-18 00:00:00 WARN  a line that came later\n'), {
      timeout: 20_000,
    })
    // Ctrl-C ends a process group.
    process.kill(-(follower.pid ?? 0), 'SIGINT')
    await closed

    process.kill(status.pid, 'SIGTERM')
    expect(await daemon).toMatchObject({ code: 0 })
  },
)

test.runIf(isLinux)('launchd gets a plist, and its log is a file that only its owner reads', async () => {
  const { home, data, env, calls } = openHome()
  const machine: Machine = { platform: 'macos', uid: 501, home, root: home, env }
  const said: string[] = []
  const report = async (line: string) => void said.push(line)
  const programs = await createPrograms(env, report)
  const manager = findManager({ user: undefined, system: undefined, name: undefined }, machine)
  const installation = {
    node: process.execPath,
    program: bin,
    directory: project,
    version: '1.0.0',
    kind: 'clone',
  } as const
  const plan = await planService({ data }, manager, programs, installation)
  const install = () => installService(plan, manager, machine, programs, { report, seconds: 60 })
  expect(await install()).toMatchObject({
    changed: true,
    daemon: { ready: true, link: expect.stringContaining('token=') },
  })
  const file = join(home, 'Library/LaunchAgents/org.hatchway.daemon.plist')
  const begun = ['launchctl enable gui/501/org.hatchway.daemon', `launchctl bootstrap gui/501 ${file}`]
  expect(calls()).toEqual(begun)
  expect(said).toContain(`Wrote ${file}`)
  const log = join(home, 'Library/Logs/hatchway.log')
  expect(statSync(log).mode & 0o777).toBe(0o600)
  expect(manager.logs(7, true)).toEqual(['tail', '-n', '7', '-F', log])
  expect(await manager.state(programs)).toMatchObject({ running: true, last_exit: 'exit code 7' })

  expect(await install()).toMatchObject({ changed: false })
  expect(calls()).toEqual([])
  writeFileSync(file, '')
  expect(await install()).toMatchObject({ changed: true })
  expect(calls()).toEqual(['launchctl bootout gui/501/org.hatchway.daemon', ...begun])

  await removeService(manager, programs, report)
  expect(calls()).toEqual(['launchctl bootout gui/501/org.hatchway.daemon'])
  expect([existsSync(file), existsSync(data)]).toEqual([false, true])
  expect(readFileSync(manager.environmentFile, 'utf8')).toBe(quietEnvironment)
})
