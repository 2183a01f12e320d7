import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { configSchema, loadConfig } from '@hatchway/host/config'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openCommand } from './testing.ts'

const bin = join(import.meta.dirname, '..', 'bin', 'hatchway.mjs')
const env = { PATH: process.env.PATH, HOME: tmpdir(), TZ: 'UTC', HATCHWAY_LOG_LEVEL: 'silent' }

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'hatchway-upkeep-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}
const hatchway = (args: readonly string[], input = '', cwd = tmpdir()) =>
  new Promise<{ code: number; out: string; err: string }>(resolve => {
    const child = execFile(
      process.execPath,
      [bin, ...args],
      { env, cwd, maxBuffer: 2 ** 26 },
      (error, out, err) =>
        resolve({ code: typeof error?.code === 'number' ? error.code : error ? -1 : 0, out, err }),
    )
    child.stdin?.end(input)
  })

describe('backup and restore', () => {
  test('with a daemon and without, into a file and through a pipe', async () => {
    const place = folder()
    const { data, host, stop, run } = await openCommand('backup')
    await host.addGroup({ folder: 'family', jid: 'web:1', name: 'Family', main: false, dialect: 'hatchway' })
    const running = join(place, 'running.tar.zst')
    expect(await run(running)).toMatchObject({
      code: 0,
      err: '',
      out: expect.stringContaining('Backup written to'),
    })
    expect(await run(running)).toMatchObject({ code: 1, err: expect.stringContaining('already exists') })
    expect(await run('-', '--json')).toMatchObject({ code: 64 })
    await stop()
    const stopped = join(place, 'stopped.tar.gz')
    expect(await run(stopped, '--no-groups')).toMatchObject({ code: 0, err: '' })
    expect(execFileSync('tar', ['-tzf', stopped], { encoding: 'utf8' })).toContain('hatchway-backup.json')
    const piped = spawnSync(
      '/bin/sh',
      [
        '-c',
        `"$0" "$1" backup - --data "$2" | "$0" "$1" restore - --data "$3" --json`,
        process.execPath,
        bin,
        data,
        join(place, 'piped'),
      ],
      { env, encoding: 'utf8' },
    )
    expect(JSON.parse(piped.stdout)).toMatchObject({ groups: 1, left_out: [] })
    for (const file of [running, stopped]) {
      const restored = join(place, `${file.includes('running') ? 'a' : 'b'}`)
      expect(await hatchway(['restore', file, '--data', restored])).toMatchObject({ code: 0, err: '' })
      const groups = await hatchway(['groups', 'list', '--json', '--data', restored])
      expect(JSON.parse(groups.out)).toMatchObject([{ folder: 'family' }])
    }
    expect(readdirSync(place).filter(name => name.includes('unfinished'))).toEqual([])
    // One line, and no stack, for whoever has the wrong file.
    truncateSync(running, 1000)
    const broken = await hatchway(['restore', running, '--data', join(place, 'c')])
    expect(broken).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringMatching(/^hatchway: The archive .*\n$/),
    })
    expect(await hatchway(['restore', stopped, '--data', join(place, 'a')])).toMatchObject({
      code: 1,
      err: expect.stringContaining('is not empty'),
    })
  })
})

describe('doctor', () => {
  test('ends with 0 if all is good and with 1 if something is bad, such as the configuration', async () => {
    const { data, host, run, json } = await openCommand('doctor')
    await host.addGroup({ folder: 'family', jid: 'web:1', name: 'Family', main: false, dialect: 'hatchway' })
    writeFileSync(
      join(data, 'off.ts'),
      "export default { agents: { enabled: 'no' }, web: { enabled: 'no' } }",
    )
    const good = await run('--config', join(data, 'off.ts'))
    expect(good.out).not.toContain('BAD')
    expect(good).toMatchObject({ code: 0, err: '' })
    expect(await json('--config', join(data, 'off.ts'))).toContainEqual({
      what: 'daemon',
      state: 'good',
      says: 'It runs, and answers.',
    })
    writeFileSync(join(data, 'bad.ts'), "export default { sweepMs: 'often' }")
    const bad = await run('--config', join(data, 'bad.ts'))
    expect(bad).toMatchObject({
      code: 1,
      err: '',
      out: expect.stringMatching(/^BAD {3}configuration: .*sweepMs.*often/),
    })
  })
})

describe('init', () => {
  test('writes a configuration that loads and registers a group, and never writes over one', async () => {
    const place = folder()
    const args = [
      'init',
      '--yes',
      '--name',
      "O'Brien",
      '--driver',
      'claude',
      '--timezone',
      'Europe/Lisbon',
      '--port',
      '0',
      '--group',
      'home',
    ]
    expect(await hatchway(args, '', place)).toMatchObject({
      code: 0,
      err: '',
      out: expect.stringContaining('export ANTHROPIC_API_KEY'),
    })
    const config = await loadConfig({ cwd: place, env: {} })
    expect(config).toMatchObject({
      data: join(place, 'data'),
      timezone: 'Europe/Lisbon',
      agents: { assistant: "O'Brien", driver: 'claude', sandbox: 'auto' },
      web: { port: 0 },
    })
    const groups = await hatchway(['groups', 'list', '--json'], '', place)
    expect(JSON.parse(groups.out)).toMatchObject([
      { folder: 'home', jid: 'local:home', name: 'Home', main: true },
    ])
    // The folder is nobody's package, so the file says itself that it is a module.
    const before = readFileSync(join(place, 'hatchway.config.mts'), 'utf8')
    expect(await hatchway(args, '', place)).toMatchObject({
      code: 1,
      err: expect.stringContaining('already exists'),
    })
    expect(await hatchway([...args, '--force', '--name', 'Ada'], '', place)).toMatchObject({ code: 0 })
    expect(readFileSync(join(place, 'hatchway.config.mts'), 'utf8')).toBe(before.replace("O\\'Brien", 'Ada'))
  })

  test('names a model, and with it the agent that can speak with any', async () => {
    const place = folder()
    const made = await hatchway(['init', '--yes', '--model', 'openai/gpt-5', '--group', 'none'], '', place)
    expect(made).toMatchObject({ code: 0, err: '', out: expect.stringContaining('export OPENAI_API_KEY=…') })
    expect(await loadConfig({ cwd: place, env: {} })).toMatchObject({
      model: { provider: 'openai', name: 'gpt-5' },
      agents: { driver: 'assistant' },
    })
  })

  test('asks nothing without a terminal, and reports invalid options', async () => {
    const place = folder()
    expect(await hatchway(['init'], '', place)).toMatchObject({
      code: 64,
      err: expect.stringContaining('--yes'),
    })
    const wrong = await hatchway(['init', '--yes', '--timezone', 'Mars/Olympus'], '', place)
    expect(wrong).toMatchObject({ code: 64, err: expect.stringContaining('--timezone') })
    expect(readdirSync(place)).toEqual([])
  })

  test.each([
    ['--timezone', 'Mars/P'],
    ['--name', ''],
    ['--name', 'x'.repeat(65)],
    ['--group', '../evil'],
    ['--key-variable', 'A B'],
    ['--model', 'qwen3'],
    ['--model', "ollama/x' }"],
    ['--jid', ''],
  ])('with %s %j leaves the configuration that is there as it was', async (option, value) => {
    const place = folder()
    const file = join(place, 'hatchway.config.ts')
    writeFileSync(file, "export default { agents: { assistant: 'Ada' } }\n")
    const refused = await hatchway(
      ['init', '--yes', '--force', '--driver', 'claude', option, value],
      '',
      place,
    )
    expect(refused).toMatchObject({ out: '', err: expect.stringMatching(/^hatchway: \S.*/) })
    expect([1, 64]).toContain(refused.code)
    expect(readFileSync(file, 'utf8')).toContain('Ada')
    expect(readdirSync(place)).toEqual(['hatchway.config.ts'])
  })

  test('writes to --config, and prints commands with that option', async () => {
    const place = folder()
    const elsewhere = join(folder(), 'hatchway.config.ts')
    const made = await hatchway(['init', '--yes', '--group', 'none', '--config', elsewhere], '', place)
    expect(made).toMatchObject({
      code: 0,
      err: '',
      out: expect.stringContaining(`npx hatchway up --config ${elsewhere}`),
    })
    expect(existsSync(elsewhere)).toBe(true)
    // Made without a group on purpose, so the first start adds none.
    expect(readdirSync(place)).toEqual(['data'])
    expect(await hatchway(['groups', 'list', '--json', '--config', elsewhere], '', place)).toMatchObject({
      out: '[]\n',
    })
  })
})

describe('password', () => {
  test('makes an entry that the configuration takes, from standard input', async () => {
    const made = await hatchway(['password'], 'correct horse\n')
    expect(made).toMatchObject({ code: 0, err: '' })
    expect(made.out).not.toContain('correct')
    const users = [{ name: 'ana', role: 'viewer', passwordHash: made.out.trim() }]
    expect(configSchema.safeParse({ web: { users } }).success).toBe(true)
    expect((await hatchway(['password'], 'correct horse\n')).out).not.toBe(made.out)
    expect(await hatchway(['password'], 'short\n')).toMatchObject({ code: 2, out: '' })
  })

  test.runIf(spawnSync('script', ['--version']).status === 0)(
    'shows nothing of it on a terminal (needs script)',
    async () => {
      const typed = async (...answers: string[]) => {
        const child = spawn('script', ['-qec', `'${process.execPath}' '${bin}' password`, '/dev/null'], {
          env,
        })
        onTestFinished(() => void child.kill('SIGKILL'))
        let shown = ''
        child.stdout.setEncoding('utf8').on('data', text => {
          shown += text
        })
        const ended = once(child, 'close')
        for (const [index, answer] of answers.entries()) {
          await vi.waitFor(() => expect(shown.match(/: /g)).toHaveLength(index + 1), { timeout: 30_000 })
          child.stdin.write(`${answer}\r`)
        }
        const [code] = await ended
        return { code, shown }
      }
      const same = await typed('sesame-open', 'sesame-open')
      expect(same.shown).toMatch(/^Password: \r\nRepeat password: \r\nscrypt\$\S+\r\n$/)
      const other = await typed('sesame-open', 'sesame-shut')
      expect(other).toMatchObject({ code: 2, shown: expect.stringContaining('not the same') })
      expect(same.shown + other.shown).not.toContain('sesame')
    },
  )
})

describe('import', () => {
  test('reports in one line that there is no installation', async () => {
    const place = folder()
    expect(await hatchway(['import', 'nanoclaw', place, '--data', join(place, 'data')])).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^hatchway: .*has no store\/messages\.db.*\n$/),
    })
    expect(existsSync(join(place, 'data'))).toBe(false)
  })
})

describe('completion', () => {
  const script = async (shell: string) => {
    const { code, out, err } = await hatchway(['completion', shell])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const path = join(folder(), `hatchway.${shell}`)
    writeFileSync(path, out)
    return path
  }
  const has = (program: string) => spawnSync(program, ['--version']).status === 0

  test('in bash completes commands, options and their values', async () => {
    const path = await script('bash')
    const completeFor = (...words: string[]) =>
      execFileSync(
        'bash',
        [
          '-c',
          `source "$0"; [[ $(complete -p "$1") =~ -F\\ ([a-z_]+) ]]; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); "\${BASH_REMATCH[1]}"; printf '%s\\n' "\${COMPREPLY[@]}"`,
          path,
          ...words,
        ],
        { encoding: 'utf8', cwd: folder() },
      )
        .split('\n')
        .filter(word => word !== '')
    const complete = (...words: string[]) => completeFor('hatchway', ...words)
    expect(complete('gro')).toEqual(['groups'])
    expect(complete('groups', '')).toEqual(expect.arrayContaining(['add', 'list', 'remove']))
    expect(complete('groups', 'add', '--di')).toEqual(['--dialect'])
    expect(complete('groups', 'add', '--dialect', 'na')).toEqual(['nanoclaw'])
    expect(complete('completion', '')).toEqual(expect.arrayContaining(['bash', 'zsh', 'fish']))
    expect(complete('import', 'nano')).toEqual(['nanoclaw'])
    expect(completeFor('npx', 'hatchway', 'groups', 'add', '--di')).toEqual(['--dialect'])
    expect(completeFor('npx', 'hatch')).toEqual([])
    expect(completeFor('npx', 'vitest', 'gro')).toEqual([])
  })

  test.runIf(has('fish'))('in fish, too (needs fish)', async () => {
    const path = await script('fish')
    const complete = (line: string) =>
      execFileSync('fish', ['--no-config', '-c', `source ${path}; complete -C "${line}"`], {
        env: { ...env, HOME: folder() },
        encoding: 'utf8',
      })
        .split('\n')
        .map(row => row.split('\t')[0])
    expect(complete('hatchway gro')).toContain('groups')
    expect(complete('hatchway groups add --di')).toContain('--dialect')
    expect(complete('hatchway groups add --dialect na')).toContain('nanoclaw')
    expect(complete('hatchway groups ')).not.toContain('groups')
  })

  test.runIf(has('zsh'))('in zsh the script loads and defines its functions (needs zsh)', async () => {
    const path = await script('zsh')
    const read = spawnSync(
      'zsh',
      [
        '-f',
        '-c',
        `autoload -Uz compinit; compinit -D; source ${path}; print $_comps[hatchway]; whence -w _hatchway_groups_add`,
      ],
      { encoding: 'utf8' },
    )
    expect(read.stderr).toBe('')
    expect(read.stdout).toBe('_hatchway\n_hatchway_groups_add: function\n')
  })

  test('there is none for other shells', async () => {
    expect(await hatchway(['completion', 'tcsh'])).toMatchObject({
      code: 64,
      err: expect.stringContaining('bash, zsh, fish'),
    })
  })
})

test('the demonstration plays to its end and leaves nothing behind', async () => {
  const place = folder()
  const played = await new Promise<{ code: number; out: string }>(resolve => {
    const child = execFile(
      process.execPath,
      [bin, 'demo', '--once'],
      { env: { ...env, TMPDIR: place } },
      (error, out) => resolve({ code: error ? 1 : 0, out }),
    )
    child.stdin?.end()
  })
  expect(played.out).toContain('This was the demo.')
  expect(played.code).toBe(0)
  expect(readdirSync(place).filter(name => name.startsWith('hatchway-demo'))).toEqual([])
})

test('a missing data directory is reported, and not created', async () => {
  const place = join(folder(), 'typo')
  for (const command of ['tasks list', 'groups list', 'status', 'tail', 'backup -'])
    expect(await hatchway([...command.split(' '), '--data', place])).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringContaining(`There is no data directory ${place}. `),
    })
  expect(existsSync(place)).toBe(false)
})
