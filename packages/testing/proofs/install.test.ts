import { execFile, execFileSync, spawn } from 'node:child_process'
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { homedir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { packAll } from '../../../scripts/pack.ts'
import { temporaryFolder } from '../src/folders.ts'
import { projectRoot } from '../src/paths.ts'
import { until } from '../src/until.ts'

/**
 * The packages as people install them: packed, and installed into empty folders by somebody whose home is empty. Nothing
 * of the repository is beside them.
 */
const run = promisify(execFile)
const place = temporaryFolder('install')
const tarballs = new Map<string, string>()

const home = join(place, 'home')
/** npm may need its own settings to reach the registry, and takes from its cache what is there. */
const cache = execFileSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8' }).trim()
const environment = (more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(npm_|HATCHWAY_|TEST_|VITEST)/.test(name)),
  ),
  HOME: home,
  ...more,
  npm_config_cache: cache,
  npm_config_userconfig: process.env.npm_config_userconfig ?? join(homedir(), '.npmrc'),
  npm_config_prefer_offline: 'true',
  npm_config_audit: 'false',
  npm_config_fund: 'false',
})

/** An empty folder of somebody's with these packages in it. */
async function install(name: string, ...packages: string[]) {
  const folder = join(place, name)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  await run('npm', ['install', ...packages], { cwd: folder, env: environment() })
  return folder
}
/** `npx hatchway up` in this folder, until the test ends. What it has printed, once it is ready and says how to chat. */
async function up(folder: string, env: NodeJS.ProcessEnv) {
  const daemon = spawn('npx', ['hatchway', 'up'], { cwd: folder, env, detached: true })
  const ended = new Promise(resolve => daemon.once('close', resolve))
  // It ends its agents itself: killed, it would leave their sandboxes running.
  onTestFinished(async () => {
    process.kill(-(daemon.pid ?? 0), 'SIGTERM')
    await ended
  })
  let printed = ''
  for (const stream of [daemon.stdout, daemon.stderr]) stream.on('data', chunk => (printed += chunk))
  await until(() => /\bready\b/.test(printed))
  await until(() => /http:\/\/\S+/.test(printed))
  return printed
}

const tarball = (name: string) => tarballs.get(name) ?? `no tarball of ${name}`
const bytesIn = (folder: string) =>
  Number(execFileSync('du', ['-sb', folder], { encoding: 'utf8' }).split('\t')[0])
const codeBlocks = (file: string, fence: RegExp) =>
  [...readFileSync(join(projectRoot, file), 'utf8').matchAll(fence)].map(([, code = '']) => code)

beforeAll(async () => {
  mkdirSync(home)
  for (const file of await packAll(join(place, 'packed'))) {
    const { name } = JSON.parse(
      execFileSync('tar', ['xzOf', file, 'package/package.json'], { encoding: 'utf8' }),
    )
    tarballs.set(name, file)
  }
}, 300_000)
afterAll(() => rmSync(place, { recursive: true, force: true }))

test('each package holds JavaScript, declarations and source maps, and no sources or tests', () => {
  expect([...tarballs.keys()].sort()).toEqual([
    '@hatchway/agent',
    '@hatchway/protocol',
    '@hatchway/spool',
    'hatchway',
  ])
  for (const [own, file] of tarballs) {
    const readme = execFileSync('tar', ['xzOf', file, 'package/README.md'], { encoding: 'utf8' })
    expect(readme).toMatch(new RegExp(`^# ${own}\n`))
    expect(readme).not.toContain('](../')
    const names = execFileSync('tar', ['tzf', file], { encoding: 'utf8' }).trim().split('\n')
    expect(names.filter(name => /\.test\.|(?<!\.d)\.ts$|\/src\/.*\.m?js$/.test(name))).toEqual([])
    for (const needed of ['package.json', 'README.md', 'LICENSE', 'dist/index.mjs', 'dist/index.mjs.map'])
      expect(names).toContain(`package/${needed}`)
    const hasLibraries = !/spool|protocol/.test(file)
    for (const needed of ['THIRD-PARTY-LICENSES.txt', 'sbom.cdx.json'])
      expect(names.includes(`package/${needed}`)).toBe(hasLibraries)
    expect(names.filter(name => name.includes('node_modules'))).toEqual([])
    // What `agents add` and `channels add` install from.
    if (own === 'hatchway')
      for (const folder of [
        ...addable('agent/src/drivers', 'agent/drivers'),
        ...addable(channels, 'channels'),
      ])
        for (const needed of ['package.json', 'package-lock.json'])
          expect(names).toContain(`package/dist/${folder}/${needed}`)
    for (const name of names.filter(
      each => /\/dist\/.*\.mjs$/.test(each) && !names.includes(`${each}.map`),
    )) {
      // The bundler's own code has no source, nor has a file that only says what another exports.
      const code = execFileSync('tar', ['xzOf', file, name], { encoding: 'utf8' })
      const isOwn = name.includes('/rolldown-runtime-') || /^(?:(?:import|export) \{[^;]*;\s*)*$/.test(code)
      expect({ name, isOwn }).toEqual({ name, isOwn: true })
    }
  }
})

const channels = 'host/src/plugins/channels'
/** Where the lock files of these sources are in the package. */
function addable(sources: string, place: string): string[] {
  const locks = globSync(join(projectRoot, 'packages', sources, '*', 'package-lock.json'))
  expect(locks).not.toEqual([])
  return locks.map(lock => join(place, basename(dirname(lock))))
}

test('each package passes publint and are-the-types-wrong', async () => {
  const tool = (name: string) => join(projectRoot, 'packages', 'node_modules', '.bin', name)
  for (const file of tarballs.values()) {
    await run(tool('publint'), ['--strict', file])
    // Whoever uses these packages imports them: there is no CommonJS.
    await run(tool('attw'), [file, '--profile', 'esm-only'])
  }
})

test('the spool alone runs the example of its README', async () => {
  const folder = await install('spool', tarball('@hatchway/spool'))
  const [agent = '', host = ''] = codeBlocks('packages/spool/README.md', /```ts\n(.*?)```/gs)
  writeFileSync(join(folder, 'agent.mjs'), stripTypeScriptTypes(agent))
  writeFileSync(join(folder, 'host.mjs'), stripTypeScriptTypes(host))
  mkdirSync(join(folder, 'data', 'ipc', 'alice', 'messages'), { recursive: true })
  const reader = spawn(process.execPath, ['host.mjs'], { cwd: folder, env: environment() })
  onTestFinished(() => void reader.kill('SIGKILL'))
  let printed = ''
  for (const stream of [reader.stdout, reader.stderr]) stream.on('data', chunk => (printed += chunk))
  await run(process.execPath, ['agent.mjs'], { cwd: folder, env: environment() })
  await until(() => printed !== '')
  expect(printed).toBe('alice {"text":"hello"}\n')
})

test('the protocol and the agent’s side install alone, each without the other', async () => {
  const installed = async (own: string, script: string) => {
    const folder = await install(own, tarball(`@hatchway/${own}`))
    expect(readdirSync(join(folder, 'node_modules', '@hatchway'))).toEqual([own])
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script], { cwd: folder })
    return { folder, stdout }
  }
  const [protocol, agent] = await Promise.all([
    installed(
      'protocol',
      `import { commandTypes } from '@hatchway/protocol'; console.log(commandTypes.includes('send_message'))`,
    ),
    installed('agent', `import { createHatch } from '@hatchway/agent'; console.log(typeof createHatch)`),
  ])
  expect([protocol.stdout, agent.stdout]).toEqual(['true\n', 'function\n'])
  const refused = await run('npx', ['hatchway-agent', 'nonsense'], {
    cwd: agent.folder,
    env: environment(),
  }).catch((error: { code: number; stderr: string }) => error)
  expect(refused).toMatchObject({ code: expect.any(Number), stderr: expect.stringContaining('mcp') })
})

test('hatchway: a daemon, a chat, a plugin from another package, and a typed configuration', async () => {
  const plugin = join(place, 'plugin')
  mkdirSync(plugin)
  const [dice = ''] = codeBlocks('docs/extending.md', /```ts file=dice\.ts\n(.*?)```/gs)
  writeFileSync(join(plugin, 'index.js'), stripTypeScriptTypes(dice))
  writeFileSync(
    join(plugin, 'index.d.ts'),
    `import type { Plugin } from 'hatchway/plugin'\nexport default function dice(settings?: { mostDice?: number }): Plugin\n`,
  )
  const about = { name: 'hatchway-plugin-dice', version: '1.0.0', type: 'module', types: 'index.d.ts' }
  writeFileSync(
    join(plugin, 'package.json'),
    JSON.stringify({ ...about, exports: { types: './index.d.ts', default: './index.js' } }),
  )
  execFileSync('npm', ['pack', '--pack-destination', place], {
    cwd: plugin,
    stdio: 'ignore',
    env: environment(),
  })

  const folder = await install('host', tarball('hatchway'), join(place, 'hatchway-plugin-dice-1.0.0.tgz'))
  expect(bytesIn(join(folder, 'node_modules'))).toBeLessThan(60 * 1024 * 1024)
  writeFileSync(
    join(folder, 'hatchway.config.ts'),
    `import { defineConfig } from 'hatchway/config'
import dice from 'hatchway-plugin-dice'

export default defineConfig({ plugins: [dice({ mostDice: 3 })], web: { port: 0 } })
`,
  )
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        ...{ strict: true, noEmit: true, skipLibCheck: false, exactOptionalPropertyTypes: true },
        ...{ module: 'nodenext', target: 'esnext', types: ['node'], allowImportingTsExtensions: true },
        typeRoots: [join(projectRoot, 'node_modules', '@types')],
      },
      include: ['*.ts'],
    }),
  )
  // The examples of docs/extending.md, against the types that come with the package.
  const page = readFileSync(join(projectRoot, 'docs', 'extending.md'), 'utf8')
  for (const [, name = '', code = ''] of page.matchAll(/```ts file=(\S+)\n([\s\S]*?)```/g))
    writeFileSync(join(folder, name === 'hatchway.config.ts' ? 'example.config.ts' : name), code)
  const tsc = join(projectRoot, 'node_modules', 'typescript', 'bin', 'tsc')
  // A mistake in a configuration is seen where it was made, and is the only thing that is seen.
  writeFileSync(
    join(folder, 'mistake.config.ts'),
    `import { defineConfig } from 'hatchway/config'\nexport default defineConfig({ agents: { driver: 3 } })\n`,
  )
  const checked = await run(process.execPath, [tsc, '-p', folder]).catch((error: { stdout: string }) => error)
  expect(checked.stdout.trim().split(/\n(?! )/)).toEqual([
    expect.stringMatching(/^\S*mistake\.config\.ts\(2,\d+\): error TS2322/),
  ])

  const hatchway = (...args: string[]) =>
    run('npx', ['hatchway', ...args], { cwd: folder, env: environment() })
  const printed = await up(folder, environment())
  expect(printed).toContain(': 1 group ')
  expect((await hatchway('chat', '--once', 'hello', '--wait')).stdout).toContain('I’m Hatch')
  const roll = { tool: 'roll_dice', arguments: { dice: 3 } }
  const request = [
    'post',
    '--group',
    'main',
    '--type',
    'call_service',
    '--payload',
    JSON.stringify(roll),
    '--wait',
  ]
  expect((await hatchway(...request, '--json')).stdout).toMatch(/"shown":\s*\[\s*\d,\s*\d,\s*\d\s*\]/)
  const link = new URL(/http:\/\/\S+/.exec(printed)?.[0] ?? '')
  const [cookie = ''] = (await fetch(link, { redirect: 'manual' })).headers.getSetCookie()
  const shown = await fetch(link.origin, { headers: { cookie: cookie.split(';')[0] ?? '' } })
  expect(await shown.text()).toContain('<div id="console">')
})

/** A folder that was empty, and somebody whose home is empty, before `npm install`. */
const plain = join(place, 'plain')
const atPlain = (home: string) => {
  const env = environment({ HOME: join(place, home), HATCHWAY_WEB_PORT: '0' })
  // Not by npx, which may have warnings of its own.
  const program = join(plain, 'node_modules', 'hatchway', 'bin', 'hatchway.mjs')
  const hatchway = (...args: string[]) => run(process.execPath, [program, ...args], { cwd: plain, env })
  return { env, hatchway }
}
let installing: Promise<unknown> | undefined
function installPlain() {
  for (const folder of [plain, join(place, 'no-home')]) mkdirSync(folder, { recursive: true })
  const { env } = atPlain('no-home')
  installing ??= run('npm', ['install', tarball('hatchway')], { cwd: plain, env })
  return installing
}

test('hatchway: in an empty folder, the daemon starts and answers, and finds what can be added', async () => {
  await installPlain()
  const { env, hatchway } = atPlain('no-home')
  const listed = await run('npx', ['hatchway', 'agents', 'list', '--json'], { cwd: plain, env })
  const driver = join(projectRoot, 'packages', 'agent', 'src', 'drivers', 'claude', 'package.json')
  const { dependencies } = JSON.parse(readFileSync(driver, 'utf8'))
  expect(JSON.parse(listed.stdout)).toContainEqual(
    expect.objectContaining({ driver: 'claude', tested: dependencies['@anthropic-ai/claude-agent-sdk'] }),
  )
  const printed = await up(plain, env)
  expect(printed).toContain(`ready on ${join(plain, 'data')}: 1 group `)
  expect(printed).toMatch(/^Chat with your assistant: http:\/\/127\.0\.0\.1:\d+\/\?token=\S+$/m)
  expect((await hatchway('chat', '--once', 'hello', '--wait')).stdout).toContain('I’m Hatch')
  // It installs the library first.
  const added = await hatchway('channels', 'add', 'telegram').catch((error: { stderr: string }) => error)
  expect(added.stderr).toMatch(/token/i)
  expect(existsSync(join(plain, 'data', 'channels', 'telegram', 'node_modules', 'grammy'))).toBe(true)
})

test('hatchway: init works in a folder as npm init makes it, and prints no warning', async () => {
  await installPlain()
  const { env, hatchway } = atPlain('home')
  rmSync(join(plain, 'data'), { recursive: true, force: true })
  await run('npm', ['init', '-y'], { cwd: plain, env })
  const file = join(plain, 'package.json')
  const manifest = JSON.parse(readFileSync(file, 'utf8'))
  for (const type of ['commonjs', undefined]) {
    writeFileSync(file, JSON.stringify({ ...manifest, type }))
    const made = await hatchway('init', '--yes', '--force', '--port', '0')
    expect(made).toMatchObject({ stdout: expect.stringContaining('hatchway.config.mts'), stderr: '' })
    expect(await hatchway('config')).toMatchObject({
      stdout: expect.stringContaining('hatchway.config.mts'),
      stderr: '',
    })
    expect(await hatchway('groups', 'list')).toMatchObject({
      stdout: expect.stringContaining('main'),
      stderr: '',
    })
  }
  // One that was written by hand is refused with what to do.
  writeFileSync(file, JSON.stringify({ ...manifest, type: 'commonjs' }))
  const own = join(plain, 'own.config.ts')
  writeFileSync(own, `import { defineConfig } from 'hatchway/config'\nexport default defineConfig({})\n`)
  const refused = await hatchway('config', '--config', own).catch((error: { stderr: string }) => error)
  expect(refused.stderr).toContain('rename the file to own.config.mts')
})
