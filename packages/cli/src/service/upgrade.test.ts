import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { installRelease, isNewer, sectionsBetween } from './releases.ts'
import { openHome } from './testing.ts'

const program = join(import.meta.dirname, '..', '..')
const isLinux = process.platform === 'linux'

const changelog = `# Changes

## [1.2.0] - 2026-03-01
Third.

## 1.1.0
Second.

## 1.0.0
First.
`

/**
 * The bundle as a release of this version has it. The name of a chunk changes with its content, so another release has
 * files of other names: what a running command loads too late is gone.
 */
function placeBundle(version: string, output: string): void {
  const bundle = join(program, 'dist')
  const files = readdirSync(bundle).filter(name => name.endsWith('.mjs'))
  const chunks = new Set(files.filter(name => /-[\w-]{8}\.mjs$/.test(name)))
  const renamed = (name: string) => (chunks.has(name) ? name.replace(/mjs$/, `${version}.mjs`) : name)
  mkdirSync(output)
  for (const name of files) {
    const text = readFileSync(join(bundle, name), 'utf8')
    writeFileSync(join(output, renamed(name)), text.replaceAll(/[\w.-]+\.mjs\b/g, renamed))
  }
  cpSync(join(bundle, 'files'), join(output, 'files'), { recursive: true })
}

/** A real npm with a registry of its own. Its releases are packed from the bundle of this clone. */
async function openRegistry() {
  const place = openHome()
  const { home, env, run } = place
  const folder = join(home, 'registry')
  mkdirSync(folder)
  const released: Record<string, object> = {}
  let latest = '1.0.0'
  const server = createServer(({ url = '' }, response) => {
    const file = join(folder, url.slice(url.lastIndexOf('/') + 1))
    if (url.endsWith('.tgz') && existsSync(file)) return response.end(readFileSync(file))
    if (url !== '/hatchway') return response.writeHead(404).end('{}')
    response.setHeader('content-type', 'application/json')
    return response.end(JSON.stringify({ name: 'hatchway', 'dist-tags': { latest }, versions: released }))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const registry = `http://127.0.0.1:${port}/`
  Object.assign(env, { npm_config_registry: registry, npm_config_cache: join(home, 'cache') })

  const release = async (version: string, { broken = false, packed = true } = {}) => {
    const made = join(home, `release-${version}`)
    cpSync(join(program, 'bin'), join(made, 'bin'), { recursive: true })
    placeBundle(version, join(made, 'dist'))
    const about = { name: 'hatchway', version, type: 'module', bin: { hatchway: 'bin/hatchway.mjs' } }
    writeFileSync(join(made, 'package.json'), JSON.stringify(about))
    writeFileSync(join(made, 'CHANGELOG.md'), changelog)
    if (broken) {
      const main = join(made, 'dist/main.mjs')
      const text = readFileSync(main, 'utf8')
      writeFileSync(
        main,
        `if (process.argv[2] === 'supervise') throw new Error('this release is broken')\n${text}`,
      )
    }
    if (packed)
      expect(await run('npm', 'pack', made, `--pack-destination=${folder}`)).toMatchObject({ code: 0 })
    const file = `hatchway-${version}.tgz`
    released[version] = { ...about, dist: { tarball: `${registry}hatchway/-/${file}` } }
    latest = version
  }
  /** somebody's folder with the newest release, whose service runs */
  const install = async () => {
    const app = join(home, 'app')
    mkdirSync(app)
    expect(await run('npm', 'install', 'hatchway', `--prefix=${app}`)).toMatchObject({ code: 0 })
    const hatchway = (...args: string[]) =>
      run(process.execPath, join(app, 'node_modules/.bin/hatchway'), ...args)
    const installed = (): unknown =>
      JSON.parse(readFileSync(join(app, 'node_modules/hatchway/package.json'), 'utf8')).version
    expect(await hatchway('service', 'install', '--user', '--data', place.data)).toMatchObject({
      code: 0,
      err: '',
    })
    return { hatchway, installed }
  }
  return { ...place, release, install }
}

test.runIf(isLinux)('an upgrade says what is new, backs up and restarts the service', async () => {
  const { home, calls, release, install } = await openRegistry()
  await release('1.0.0')
  const { hatchway, installed } = await install()
  expect(await hatchway('upgrade')).toMatchObject({
    code: 0,
    out: expect.stringContaining('That is the newest'),
  })
  expect(await hatchway('upgrade', '--to', '9.9.9')).toMatchObject({
    code: 1,
    err: expect.stringContaining('There is no hatchway@9.9.9'),
  })

  await release('1.1.0')
  expect(JSON.parse((await hatchway('upgrade', '--check', '--json')).out)).toMatchObject({
    installed: '1.0.0',
    available: '1.1.0',
    upgrade: true,
    changes: '## 1.1.0\nSecond.',
  })
  expect(await hatchway('upgrade')).toMatchObject({ code: 64, err: expect.stringContaining('--yes') })
  expect(installed()).toBe('1.0.0')
  calls()
  const done = await hatchway('upgrade', '--yes')
  expect(done).toMatchObject({
    code: 0,
    err: '',
    out: expect.stringContaining('1.1.0 is installed and running.'),
  })
  expect(installed()).toBe('1.1.0')
  expect(calls()).toEqual(['systemctl --user restart hatchway.service'])
  const backups = join(home, 'hatchway-backups')
  const [backup = ''] = readdirSync(backups)
  expect(done.out).toContain(join(backups, backup))
  const copy = join(home, 'copy')
  expect(await hatchway('restore', join(backups, backup), '--data', copy)).toMatchObject({ code: 0 })
})

test.runIf(isLinux)(
  'an upgrade that cannot be installed, or does not start, leaves the version before',
  async () => {
    const { data, release, install } = await openRegistry()
    await release('1.1.0')
    const { hatchway, installed } = await install()
    await release('1.1.1', { packed: false })
    expect(await hatchway('upgrade', '--yes')).toMatchObject({
      code: 1,
      err: expect.stringContaining('Nothing was upgraded: 1.1.0 is still installed. The backup is'),
    })

    await release('1.2.0', { broken: true })
    const failed = await hatchway('upgrade', '--yes', '--timeout', '20')
    expect(failed).toMatchObject({
      code: 1,
      err: expect.stringContaining('1.2.0 did not start, so 1.1.0 is installed and running again'),
    })
    expect(failed.err).not.toContain('Cannot find')
    expect(failed.err).toMatch(/hatchway restore \S+hatchway-1\.1\.0-\S+\.tar\.zst --data \S+ --force/)
    expect(installed()).toBe('1.1.0')
    expect(await hatchway('status', '--data', data, '--json')).toMatchObject({
      out: expect.stringContaining('"daemon": true'),
    })
  },
)

test.runIf(isLinux)('an upgrade backs up and restarts the service that is named', async () => {
  const { home, calls, release, install } = await openRegistry()
  await release('1.0.0')
  const { hatchway } = await install()
  const second = join(home, 'second-data')
  mkdirSync(second)
  const added = ['--folder', 'kitchen', '--jid', 'local:kitchen', '--name', 'Kitchen']
  expect(await hatchway('groups', 'add', '--data', second, ...added)).toMatchObject({ code: 0 })
  expect(await hatchway('service', 'install', '--user', '--name', 'second', '--data', second)).toMatchObject({
    code: 0,
  })
  await release('1.1.0')
  expect(await hatchway('upgrade', '--yes', '--name', 'third')).toMatchObject({
    code: 1,
    err: expect.stringContaining('There is no service third'),
  })
  calls()
  const archive = join(home, 'kept', 'before.tar.gz')
  expect(await hatchway('upgrade', '--yes', '--name', 'second', '--backup', archive)).toMatchObject({
    code: 0,
    out: expect.stringContaining('1.1.0 is installed and running.'),
  })
  expect(calls()).toEqual(['systemctl --user restart second.service'])
  const copy = join(home, 'copy')
  expect(await hatchway('restore', archive, '--data', copy)).toMatchObject({ code: 0 })
  expect(await hatchway('groups', 'list', '--data', copy)).toMatchObject({
    out: expect.stringContaining('Kitchen'),
  })
})

test('npm replaces the package where it is', async () => {
  const calls: string[] = []
  const run = async (...call: string[]) => {
    calls.push(call.join(' '))
    return ''
  }
  const programs = { run, ask: async () => ({ code: 0, stdout: '', stderr: '' }) }
  for (const above of ['/usr/local/lib', '/home/me/app'])
    await installRelease(programs, { directory: `${above}/node_modules/hatchway` }, '1.1.0')
  expect(calls).toEqual([
    'npm install hatchway@1.1.0 --global --prefix=/usr/local --no-audit --no-fund',
    'npm install hatchway@1.1.0 --prefix=/home/me/app --no-audit --no-fund',
  ])
})

test('a clone is not upgraded', async () => {
  const { run } = openHome()
  expect(await run(process.execPath, join(program, 'bin/hatchway.mjs'), 'upgrade')).toMatchObject({
    code: 1,
    err: expect.stringMatching(/is a clone.*git pull && npm ci.*hatchway deploy/),
  })
})

test('what is new is everything after the installed version', () => {
  expect(sectionsBetween(changelog, '1.0.0', '1.2.0')).toMatch(/^## \[1.2.0\][\s\S]*Second\.$/)
  expect(sectionsBetween(changelog, '0.9.0', '1.1.0')).toBe('## 1.1.0\nSecond.')
  expect(sectionsBetween(changelog, '1.0.0', '7.0.0')).toBeUndefined()
})

test('versions are compared by their numbers, and a release is newer than its candidates', () => {
  const newer = [
    ['1.10.0', '1.9.9'],
    ['2.0.0', '1.9.9'],
    ['1.2.0', '1.2.0-rc.1'],
    ['1.2.0-rc.2', '1.2.0-rc.1'],
    ['1.2.0-rc.10', '1.2.0-rc.9'],
    ['1.2.0-rc.1', '1.2.0-beta.3'],
    ['1.3.0-rc.1', '1.2.0'],
  ] as const
  for (const [release, installed] of newer) {
    expect(isNewer(release, installed)).toBe(true)
    expect(isNewer(installed, release)).toBe(false)
  }
  expect(isNewer('1.2.0', '1.2.0')).toBe(false)
})
