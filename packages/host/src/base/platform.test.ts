import { execFileSync, spawn } from 'node:child_process'
import { globSync, mkdirSync, openSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../../testing/src/folders.ts'
import { macosPrograms } from '../../../testing/src/macos.ts'
import { projectRoot } from '../../../testing/src/paths.ts'
import { createPlatform, type Platform } from './platform.ts'

const folder = (): string => {
  const made = temporaryFolder('platform')
  onTestFinished(() => rmSync(made, { recursive: true }))
  return made
}

/** Both branches about the same real processes: macOS by its programs, which are here Linux's with macOS's options. */
const platforms: [string, () => Platform][] = [
  ['Linux', () => createPlatform('linux')],
  [
    'macOS',
    () => {
      const before = process.env.PATH
      process.env.PATH = `${macosPrograms(folder())}:${before}`
      onTestFinished(() => {
        process.env.PATH = before
      })
      return createPlatform('darwin')
    },
  ],
]

for (const [name, create] of platforms) {
  test(`${name}: a process, its parent, its variable and where its errors go`, () => {
    const platform = create()
    const file = join(folder(), 'errors.log')
    const child = spawn('sleep', ['1000'], {
      detached: true,
      env: { ...process.env, TEST_MARK: `one/two-${name}` },
      stdio: ['ignore', 'ignore', openSync(file, 'a')],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    const pid = child.pid ?? 0
    const found = platform.process(pid)
    expect(found).toMatchObject({ pid, parent: process.pid, group: pid, name: 'sleep' })
    expect(found?.startTime).not.toBe('')
    expect(platform.processes()).toContainEqual(found)
    expect(platform.withVariable('TEST_MARK')).toContainEqual({ pid, value: `one/two-${name}` })
    expect(platform.errorOutput(pid)).toBe(file)
    expect(platform.ownMemory(process.pid)).toBeGreaterThan(1_000_000)
    expect(platform.threadsOf(process.getuid?.() ?? 0)).toBeGreaterThan(1)
  })

  test(`${name}: a process that has ended is not there, and not one that nobody waits for`, () => {
    const platform = create()
    // The shell becomes a program that never waits for the child.
    const script = '(exit 0) & echo $!; exec sleep 1000'
    const parent = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore'] })
    onTestFinished(() => void parent.kill('SIGKILL'))
    return new Promise<void>((resolve, reject) => {
      parent.stdout.once('data', text => {
        const pid = Number(text)
        const check = () => (platform.process(pid) === undefined ? resolve() : setTimeout(check, 20))
        parent.once('error', reject)
        check()
      })
    })
  })

  test(`${name}: the machine’s start has a name that stays`, () => {
    const platform = create()
    expect(platform.bootId()).toMatch(/^\S+$/)
    expect(platform.bootId()).toBe(platform.bootId())
  })

  test(`${name}: a locked directory is opened again`, () => {
    const platform = create()
    const locked = join(folder(), 'locked')
    mkdirSync(locked, { mode: 0 })
    platform.unlockDirectory(locked)
    expect(execFileSync('stat', ['-c', '%a', locked], { encoding: 'utf8' })).toBe('700\n')
  })
}

test('where a program is missing, nothing is told and nothing fails', () => {
  const before = process.env.PATH
  process.env.PATH = folder()
  onTestFinished(() => {
    process.env.PATH = before
  })
  const platform = createPlatform('darwin')
  expect(platform.processes()).toEqual([])
  expect(platform.withVariable('PATH')).toEqual([])
  expect(platform.bootId()).toBeUndefined()
  expect(platform.errorOutput(process.pid)).toBeUndefined()
})

test('on Linux a directory that has become a link is not unlocked', () => {
  const place = folder()
  mkdirSync(join(place, 'elsewhere'), { mode: 0o500 })
  symlinkSync(join(place, 'elsewhere'), join(place, 'link'))
  createPlatform('linux').unlockDirectory(join(place, 'link'))
  expect(execFileSync('stat', ['-c', '%a', join(place, 'elsewhere')], { encoding: 'utf8' })).toBe('500\n')
})

test('a link is opened by the desktop of the system, and of Windows in WSL', () => {
  const wsl = folder()
  mkdirSync(join(wsl, 'proc/sys/kernel'), { recursive: true })
  writeFileSync(join(wsl, 'proc/sys/kernel/osrelease'), '6.6.87.2-microsoft-standard-WSL2\n')
  expect(createPlatform('linux', wsl).opener({ DISPLAY: ':0' })?.[0]).toBe('rundll32.exe')
  expect(createPlatform('linux', folder()).opener({ DISPLAY: ':0' })).toEqual(['xdg-open'])
  expect(createPlatform('linux', folder()).opener({})).toBeUndefined()
  expect(createPlatform('darwin').opener({ SSH_CONNECTION: 'somebody' })).toBeUndefined()
  expect(createPlatform('freebsd').opener({})).toBeUndefined()
})

test('no other file asks which system this is, or reads what only Linux has', () => {
  /** text for a sandbox, which is Linux everywhere, or for a unit of systemd */
  const texts = [
    'agent/src/shell/check.ts',
    'cli/src/service/texts.ts',
    ...['allowed-mounts', 'base-image', 'bubblewrap', 'oci'].map(name => `host/src/sandboxes/${name}.ts`),
  ]
  const sources = globSync('{host,cli,spool,agent}/src/**/*.ts', {
    cwd: join(projectRoot, 'packages'),
    exclude: path => /node_modules|testing|\.test\.ts$|platform\.ts$/.test(path),
  })
  expect(sources.length).toBeGreaterThan(100)
  const found = sources.filter(path =>
    /process\.platform|['`"/]\/?(proc|sys\/fs)\/|['"`]\/(proc|sys)['"`]/.test(
      readFileSync(join(projectRoot, 'packages', path), 'utf8'),
    ),
  )
  expect(found.filter(path => !texts.includes(path))).toEqual([])
})
