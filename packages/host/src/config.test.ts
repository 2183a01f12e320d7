import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import example from '../../../hatchway.example.config.ts'
import { settingsIn, variableOf } from './config/settings.ts'
import {
  ConfigError,
  configFrom,
  configSchema,
  explainConfig,
  explained,
  loadConfig,
  settings,
} from './config.ts'

const root = join(import.meta.dirname, '..', '..', '..')
function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'hatchway-config-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

function withFile(content: string, name = 'hatchway.config.mjs'): string {
  const cwd = folder()
  writeFileSync(join(cwd, name), content)
  return cwd
}

async function refusal(options: Parameters<typeof loadConfig>[0]): Promise<string> {
  const error = await loadConfig({ env: {}, cwd: folder(), ...options }).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(ConfigError)
  return error instanceof Error ? error.message : ''
}

test('without a file and variables every value is the default', async () => {
  const cwd = folder()
  const config = await loadConfig({ cwd, env: {} })
  expect(config).toEqual({ ...configSchema.parse({}), data: join(cwd, 'data') })
  expect(config.limits).toEqual({
    fileBytes: 1_048_576,
    jsonDepth: 64,
    commandsPerMinute: 60_000,
    filesWaiting: 50_000,
    openTasks: 1000,
    openRequests: 1000,
    openTaskBytes: 1_048_576,
    openRequestBytes: 16_777_216,
    messageBytes: 67_108_864,
    openTodos: 1000,
    attachmentBytes: 26_214_400,
    errorBytes: 268_435_456,
  })
})

test('agents cannot be configured to run as root', async () => {
  const said = 'it must be a whole number from 1 to 4294967294 (0 is root, and agents never run as root).'
  for (const name of ['uid', 'gid']) {
    const variable = `HATCHWAY_CONTAINER_${name.toUpperCase()}`
    expect(await refusal({ cwd: withFile(`export default { container: { ${name}: 0 } }`) })).toContain(said)
    expect(await refusal({ env: { [variable]: '0' } })).toContain(
      `container.${name} in ${variable} is 0; ${said}`,
    )
  }
})

test('the zone is the machine’s where none is given', async () => {
  const { timezone } = await loadConfig({ cwd: folder(), env: {} })
  expect(timezone).toBe(new Intl.DateTimeFormat().resolvedOptions().timeZone)
})

test('the command line wins over the environment, that over the file, that over the defaults', async () => {
  const cwd = withFile(
    `export default { durability: 'process', sweepMs: 1001, pollMaxMs: 2001, data: 'from-file' }`,
  )
  const env = { HATCHWAY_SWEEP_MS: '1002', HATCHWAY_POLL_MAX_MS: '2002', HATCHWAY_DATA: 'from-env' }
  const { config, file, values } = await explainConfig({
    cwd,
    env,
    data: 'from-line',
    overrides: { pollMaxMs: 2003 },
  })
  expect(config).toMatchObject({
    durability: 'process',
    sweepMs: 1002,
    pollMaxMs: 2003,
    pollMinMs: 5,
    data: join(cwd, 'from-line'),
  })
  expect(file).toBe(join(cwd, 'hatchway.config.mjs'))
  const source = (name: string) => values.find(value => value.name === name)?.source
  expect(source('durability')).toBe(file)
  expect(source('sweepMs')).toBe('HATCHWAY_SWEEP_MS')
  expect(source('pollMaxMs')).toBe('command line')
  expect(source('data')).toBe('command line')
  expect(source('pollMinMs')).toBe('default')
})

test('one value of a section can be overridden alone', async () => {
  const cwd = withFile('export default { limits: { fileBytes: 10, jsonDepth: 11 } }')
  const { limits } = await loadConfig({ cwd, env: { HATCHWAY_LIMITS_JSON_DEPTH: '12' } })
  expect(limits).toMatchObject({ fileBytes: 10, jsonDepth: 12, filesWaiting: 50_000 })
})

test('the data directory is relative to the file that names it, or to where the command runs', async () => {
  const cwd = folder()
  mkdirSync(join(cwd, 'etc'))
  writeFileSync(join(cwd, 'etc', 'hatchway.config.mjs'), `export default { data: 'here' }`)
  const file = join('etc', 'hatchway.config.mjs')
  expect((await loadConfig({ cwd, env: {}, file })).data).toBe(join(cwd, 'etc', 'here'))
  expect((await loadConfig({ cwd, env: { HATCHWAY_CONFIG: file } })).data).toBe(join(cwd, 'etc', 'here'))
  expect((await loadConfig({ cwd, env: { HATCHWAY_DATA: 'there' }, file })).data).toBe(join(cwd, 'there'))
})

test('a file in TypeScript is read as it is', async () => {
  const cwd = withFile(
    `const durability: 'full' | 'process' = 'process'\nexport default { durability }\n`,
    'hatchway.config.ts',
  )
  expect((await loadConfig({ cwd, env: {} })).durability).toBe('process')
})

test('an empty variable counts as unset', async () => {
  expect((await loadConfig({ cwd: folder(), env: { HATCHWAY_DURABILITY: '' } })).durability).toBe('full')
})

test.each(['12abc', '1e3', ' 5', '0x10', '1.5', '-1', '99999999999999999999'])(
  'a variable that is not a whole number in range is refused: %j',
  async text => {
    const message = await refusal({ env: { HATCHWAY_LIMITS_FILE_BYTES: text } })
    expect(message).toContain('limits.fileBytes in HATCHWAY_LIMITS_FILE_BYTES is ')
    expect(message).toContain('it must be a whole number from 1 to 268435456.')
  },
)

test('a wrong value is named with its place and what is allowed', async () => {
  const cwd = withFile(`export default { durability: 'paper' }`)
  expect(await refusal({ cwd })).toContain(
    `durability in ${join(cwd, 'hatchway.config.mjs')} is "paper"; it must be one of full, process.`,
  )
  expect(await refusal({ data: '' })).toContain('data on the command line is ""; it must be a path.')
})

test('all wrong values are named at once', async () => {
  const message = await refusal({ env: { HATCHWAY_EVENTS: 'maybe', HATCHWAY_LOG_LEVEL: 'loud' } })
  expect(message).toContain('events in HATCHWAY_EVENTS')
  expect(message).toContain('logLevel in HATCHWAY_LOG_LEVEL')
})

test('a setting that does not exist is refused, with those that do', async () => {
  const cwd = withFile('export default { limits: { fileByte: 1 }, durabilty: 1 }')
  const message = await refusal({ cwd })
  expect(message).toContain('limits.fileByte in')
  expect(message).toContain('limits.fileBytes')
  expect(message).toContain('durabilty in')
  expect(message).toMatch(/durability, .*limits, keep, container, .*logLevel/)
})

test('a section that is no object is refused', async () => {
  const cwd = withFile('export default { limits: 5 }')
  expect(await refusal({ cwd })).toContain('is 5; it must be an object with settings of limits.')
})

test.each(['Atlantis/Capital', '+02:00', '', 'GMT+99:00'])('%j is not a time zone', async zone => {
  const cwd = withFile(`export default { timezone: ${JSON.stringify(zone)} }`)
  expect(await refusal({ cwd })).toContain('it must be an IANA time zone')
})

test('a shortest pause longer than the longest one is refused', async () => {
  const message = await refusal({ env: { HATCHWAY_POLL_MIN_MS: '2000' } })
  expect(message).toContain('pollMinMs in HATCHWAY_POLL_MIN_MS is 2000, which is more than pollMaxMs, 1000.')
})

test('a file that is missing, broken or exports nothing is refused', async () => {
  expect(await refusal({ file: 'nowhere.ts' })).toContain('There is no configuration file')
  expect(await refusal({ cwd: withFile('export default {') })).toContain('cannot be loaded')
  expect(await refusal({ cwd: withFile('export const durability = 1') })).toContain(
    'export default defineConfig',
  )
})

test('what is a list or an object has no variable, and whoever tries one is told', async () => {
  const without = settings().filter(({ env }) => env === '')
  expect(without.map(({ name }) => name)).toEqual(expect.arrayContaining(['mcp', 'groups', 'web.users']))
  expect(await refusal({ env: { HATCHWAY_MCP: '{}' } })).toContain('mcp in HATCHWAY_MCP is "{}"')
})

test('every setting is found by its variable, and described the same', () => {
  const env = Object.fromEntries(settings().map(({ path }) => [variableOf(path), 'x']))
  expect(settingsIn(env)).toEqual(settings())
})

test('a configuration that a program made says so of what it gave', () => {
  const values = explained(configFrom({ web: { port: 1 }, groups: { work: {} } }, 'a test'))
  const sourceOf = (name: string) => values.find(value => value.name === name)?.source
  expect(['web.port', 'groups', 'sweepMs'].map(sourceOf)).toEqual(['a test', 'a test', 'default'])
})

test('every setting has a description, a variable of its own and says what is allowed', () => {
  const all = settings()
  const variables = all.map(setting => setting.env).filter(variable => variable !== '')
  expect(new Set(variables).size).toBe(variables.length)
  for (const setting of all) {
    expect(setting.description, setting.name).not.toBe('')
    expect(setting.allowed, setting.name).not.toBe('')
    expect(setting.default, setting.name).not.toBe('undefined')
  }
})

test('docs/configuration.md has a row for every setting, and no other', () => {
  const cells = (row: string) =>
    row
      .split('|')
      .slice(1, -1)
      .map(cell => cell.trim())
  const rows = readFileSync(join(root, 'docs', 'configuration.md'), 'utf8')
    .split('\n')
    .filter(line => line.startsWith('| `'))
  const expected = settings().map(({ name, default: value, allowed, env, description }) => [
    `\`${name}\``,
    value,
    allowed,
    env === '' ? '–' : `\`${env}\``,
    description,
  ])
  expect(rows.map(cells)).toEqual(expected)
})

test('the example file states the defaults', () => {
  expect(configSchema.parse(example)).toEqual(configSchema.parse({}))
})
