import { execFileSync, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, type Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { bundleShells } from '../../bundle.ts'
import { jsonFiles, onlyFile, playHost, temporaryFolder, until } from '../mcp/testing.ts'
import { readInput } from './script.ts'

/** The shells as a sandbox has them, called as agents call them; behind the hatch a host that is played. */
const shells = mkdtempSync(join(tmpdir(), 'hatchway-shells-'))
beforeAll(() => bundleShells(shells))
afterAll(() => rmSync(shells, { recursive: true, force: true }))

interface CallOptions {
  shell?: string
  input?: string | Buffer
  env?: NodeJS.ProcessEnv
  stdio?: SpawnOptions['stdio']
}

/** A folder to work in, a host, and shells that ask it. */
function openRoom() {
  const host = playHost()
  const cwd = temporaryFolder()
  const home = temporaryFolder()
  const temporary = temporaryFolder()
  const environment = {
    HATCHWAY_IPC: host.ipc,
    HATCHWAY_NODE: process.execPath,
    PATH: `${shells}:${process.env.PATH}`,
    SHELL: join(shells, 'bash'),
    HOME: home,
    TMPDIR: temporary,
  }
  const call = (args: readonly string[], options: CallOptions = {}) => {
    const { shell = 'bash', input = '', env = {}, stdio = 'pipe' } = options
    const child = spawn(shell, args, { cwd, env: { ...environment, ...env }, stdio })
    onTestFinished(() => void child.kill('SIGKILL'))
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
    const textOf = async (stream: Readable | null) =>
      stream ? (await buffer(stream)).toString('latin1') : ''
    const done = Promise.all([once(child, 'close'), textOf(child.stdout), textOf(child.stderr)]).then(
      ([[code, signal], out, err]) => ({ code, signal, out, err }),
    )
    return { child, done }
  }
  const run = (args: readonly string[], options?: CallOptions) => call(args, options).done
  /** runs what the host has to be asked about, and is told yes */
  const runAllowed = async (args: readonly string[], options?: CallOptions) => {
    const { done } = call(args, options)
    const { id, payload } = await host.take()
    host.answer(id, { decision: 'allow' })
    return { ...(await done), asked: payload.command }
  }
  return { host, cwd, home, temporary, environment, call, run, runAllowed }
}

const asked = (tasks: string) => jsonFiles(tasks).length

describe('what is harmless runs as in the real shell, and nobody is asked', () => {
  test('exit codes', async () => {
    const { run, host } = openRoom()
    for (const code of [0, 1, 3, 126, 127, 255])
      expect(await run(['-c', `exit ${code}`])).toEqual({ code, signal: null, out: '', err: '' })
    expect(await run(['-c', 'echo x; exit 4'], { shell: 'sh' })).toMatchObject({ code: 4, out: 'x\n' })
    expect(asked(host.tasks)).toBe(0)
  })

  test('what it reads and writes, byte by byte', async () => {
    const { run } = openRoom()
    const input = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7) % 256))
    const { out, err } = await run(['-c', 'cat; ls /no/such/place'], { input })
    expect(Buffer.from(out, 'latin1').equals(input)).toBe(true)
    expect(err).toContain('/no/such/place')
  })

  test('a harmless script from a file, and one on standard input', async () => {
    const { run, cwd, host, temporary } = openRoom()
    writeFileSync(join(cwd, 'count.sh'), '#!/bin/bash\n# two words\necho a\necho "b c" | cat\n')
    expect(await run(['count.sh', 'x y'])).toMatchObject({ code: 0, out: 'a\nb c\n' })
    expect(await run(['-s', 'x'], { input: 'echo x\nls -d /\nexit 4' })).toEqual({
      ...{ code: 4, signal: null, out: 'x\n/\n', err: '' },
    })
    expect(await run([], { input: '' })).toMatchObject({ code: 0, out: '' })
    expect(asked(host.tasks)).toBe(0)
    expect(readdirSync(temporary)).toEqual([])
  })

  test('its version', async () => {
    const { run } = openRoom()
    expect((await run(['--version'])).out).toContain('GNU bash')
  })
})

describe('what the host allows runs as in the real shell', () => {
  const odd = [
    'a b',
    '',
    '*',
    "it's",
    '"',
    '\\',
    'line\nline',
    '$(touch x)',
    '`touch x`',
    '-n',
    '--',
    'ünï 👋',
    '\ufffd',
  ]

  test('arguments with odd characters', async () => {
    const { runAllowed, cwd } = openRoom()
    const script = 'eval :; printf "<%s>" "$0" "$@"'
    const args = ['-c', script, ...odd]
    const real = execFileSync('/bin/bash', args, { encoding: 'latin1' })
    expect(await runAllowed(args)).toMatchObject({ code: 0, out: real, err: '' })
    expect(readdirSync(cwd)).toEqual([])
  })

  test('the environment, but for the shells themselves', async () => {
    const { runAllowed, environment } = openRoom()
    const env = {
      name: 'kept',
      here: 'kept',
      code: 'kept',
      input: 'kept',
      IFS: ':',
      ODD: "a\nb'c",
      EMPTY: '',
    }
    const list = `${process.execPath} -p 'JSON.stringify(process.env)'`
    const { out } = await runAllowed(['-c', list], { env })
    const real = execFileSync('/bin/bash', ['-c', list], {
      encoding: 'latin1',
      env: { ...environment, ...env },
    })
    const own = { PATH: process.env.PATH, SHELL: expect.stringMatching(/^(\/usr)?\/bin\/bash$/) }
    const sets = { PWD: expect.anything(), OLDPWD: undefined, _: expect.anything(), SHLVL: expect.anything() }
    expect({ ...JSON.parse(out), ...sets }).toEqual({ ...JSON.parse(real), ...sets, ...own })
  })

  test('what it starts does not ask again', async () => {
    const { runAllowed, host } = openRoom()
    const { out } = await runAllowed([
      '-c',
      'sh -c "eval expr 2"; bash -c "eval expr 3"; $SHELL -c "eval expr 4"',
    ])
    expect(out).toBe('2\n3\n4\n')
    expect(asked(host.tasks)).toBe(0)
  })

  test('open files that were handed on', async () => {
    const { runAllowed, cwd } = openRoom()
    writeFileSync(join(cwd, 'third'), 'three')
    const third = openSync(join(cwd, 'third'), 'r')
    const result = await runAllowed(['-c', 'eval :; cat <&3'], { stdio: ['pipe', 'pipe', 'pipe', third] })
    expect(result).toMatchObject({ code: 0, out: 'three', err: '' })
  })

  test('a broken pipe is as quiet as ever', async () => {
    const { runAllowed } = openRoom()
    expect(await runAllowed(['-c', 'eval :; yes | head -1'])).toMatchObject({ out: 'y\n', err: '' })
  })

  test('scripts, of which the host is shown the text', async () => {
    const { runAllowed, cwd } = openRoom()
    writeFileSync(join(cwd, 'add.sh'), 'eval "expr $1 + $2"; exit 5')
    const file = await runAllowed(['add.sh', '3', '4'])
    expect(file).toMatchObject({
      code: 5,
      out: '7\n',
      asked: `bash -c 'eval "expr $1 + $2"; exit 5' add.sh 3 4`,
    })
    const piped = await runAllowed([], { input: 'eval expr 20 + 1\nexit 6\n' })
    expect(piped).toMatchObject({ code: 6, out: '21\n', asked: 'eval expr 20 + 1\nexit 6\n' })
  })

  test('a program whose first line names the shell', async () => {
    const { cwd, host, environment } = openRoom()
    const program = join(cwd, 'program')
    writeFileSync(program, '#!/usr/bin/env bash\neval expr 5 + 5\n')
    chmodSync(program, 0o755)
    const child = spawn(program, { env: environment, stdio: ['ignore', 'pipe', 'inherit'] })
    host.answer((await host.take()).id, { decision: 'allow' })
    expect((await buffer(child.stdout)).toString()).toBe('10\n')
  })
})

describe('signals', () => {
  test('reach the real shell, which is the same process', async () => {
    const { call, host } = openRoom()
    const script = 'trap "echo got it; exit 7" TERM; echo ready; while :; do sleep 0.01; done'
    const { child, done } = call(['-c', script])
    host.answer((await host.take()).id, { decision: 'allow' })
    if (child.stdout) await once(child.stdout, 'data')
    child.kill('SIGTERM')
    expect(await done).toMatchObject({ code: 7, signal: null })
  })

  test.each(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP'] as const)('%s ends it', async signal => {
    const { call, host } = openRoom()
    const { child, done } = call(['-c', 'eval :; echo ready; exec sleep 1000'])
    host.answer((await host.take()).id, { decision: 'allow' })
    if (child.stdout) await once(child.stdout, 'data')
    child.kill(signal)
    expect(await done).toMatchObject({ code: null, signal })
  })

  test.each(['SIGTERM', 'SIGKILL'] as const)('%s while it waits takes the question back', async signal => {
    const { call, host, cwd } = openRoom()
    const { child, done } = call(['-c', 'expr 1 > ran'])
    await onlyFile(host.tasks)
    child.kill(signal)
    expect(await done).toMatchObject({ code: null, signal })
    await until(() => asked(host.tasks) === 0)
    expect(readdirSync(cwd)).toEqual([])
  })

  test('a host that has begun to decide is told that nobody waits', async () => {
    const { call, host } = openRoom()
    const { child } = call(['-c', 'expr 1 > ran'])
    const { id } = await host.take()
    child.kill('SIGKILL')
    expect(await onlyFile(host.tasks)).toMatchObject({ type: 'cancel_request', payload: { request_id: id } })
  })
})

describe('what is not allowed does not run', () => {
  const refused = { code: 126, signal: null, out: '' }

  test('by the host: the reason is on standard error', async () => {
    const { call, host, cwd } = openRoom()
    const { done } = call(['-c', 'curl x > ran; touch ran'])
    host.refuse((await host.take()).id, 'denied', 'Ann said no.')
    expect(await done).toEqual({ ...refused, err: 'bash: not run: Ann said no. (denied)\n' })
    expect(readdirSync(cwd)).toEqual([])
  })

  test('for any other answer, or none', async () => {
    const { call, run, host, cwd } = openRoom()
    const { done } = call(['-c', 'touch ran; curl x'], { shell: 'sh' })
    host.answer((await host.take()).id, { decision: 'ALLOW' })
    expect(await done).toMatchObject({ ...refused, err: expect.stringMatching(/^sh: not run: /) })
    const hasty = { HATCHWAY_ANSWER_TIMEOUT_MS: '30', HATCHWAY_SHELL_TIMEOUT_MS: '30' }
    expect(await run(['-c', 'touch ran; curl x'], { env: hasty })).toMatchObject(refused)
    expect(await run(['-c', 'touch ran; curl x'], { env: { HATCHWAY_IPC: '/nonexistent' } })).toMatchObject(
      refused,
    )
    expect(await run(['-c', 'touch ran'], { env: { HATCHWAY_SHELL_TIMEOUT_MS: 'soon' } })).toMatchObject(
      refused,
    )
    expect(readdirSync(cwd)).toEqual([])
    expect(asked(host.tasks)).toBe(0)
  })

  test('two at once get their own answers', async () => {
    const { call, host, cwd } = openRoom()
    const first = call(['-c', 'expr 1 > first'])
    const second = call(['-c', 'expr 2 > second'])
    await until(() => asked(host.tasks) === 2)
    for (const name of jsonFiles(host.tasks)) {
      const { id, payload } = JSON.parse(readFileSync(join(host.tasks, name), 'utf8'))
      unlinkSync(join(host.tasks, name))
      if (payload.command.includes('second')) host.answer(id, { decision: 'allow' })
      else host.refuse(id, 'denied', 'No.')
    }
    expect([(await first.done).code, (await second.done).code]).toEqual([126, 0])
    expect(readdirSync(cwd)).toEqual(['second'])
  })

  test('a shell without commands that could be known', async () => {
    const { run } = openRoom()
    expect(await run(['-i'])).toMatchObject({ ...refused, err: expect.stringContaining('Use -c') })
  })

  test('a script that cannot be looked through', async () => {
    const { run, cwd, host } = openRoom()
    mkdirSync(join(cwd, 'folder'))
    execFileSync('mkfifo', [join(cwd, 'pipe')])
    writeFileSync(join(cwd, 'large'), 'x'.repeat(200_001))
    writeFileSync(join(cwd, 'bytes'), Buffer.from([0x65, 0xff, 0x0a]))
    for (const file of ['folder', 'pipe', 'large', 'bytes', '/dev/stdin', '/dev/zero'])
      expect([file, await run([file], { input: 'touch ran' })]).toMatchObject([file, refused])
    expect(await run(['missing'])).toMatchObject({ code: 127, err: expect.stringContaining('missing') })
    expect(await run([], { input: 'x'.repeat(200_001) })).toMatchObject(refused)
    expect(asked(host.tasks)).toBe(0)
    expect(existsSync(join(cwd, 'ran'))).toBe(false)
  })

  test('bytes that are no text', async () => {
    const { environment } = openRoom()
    const result = spawn('/bin/bash', ['-c', "exec bash -c $'echo \\xff'"], { env: environment })
    expect((await buffer(result.stdout)).length).toBe(0)
    expect(result.exitCode ?? (await once(result, 'exit'))[0]).toBe(126)
  })

  test('when the gate itself is broken', async () => {
    const { run, cwd } = openRoom()
    for (const program of ['/bin/true', '/bin/false', '/bin/echo', '/nonexistent']) {
      const { code } = await run(['-c', 'touch ran'], { env: { HATCHWAY_NODE: program } })
      expect([program, code]).toEqual([program, program === '/nonexistent' ? 127 : 126])
    }
    const empty = temporaryFolder()
    execFileSync('cp', [join(shells, 'bash'), empty])
    expect(await run(['-c', 'touch ran'], { shell: join(empty, 'bash') })).toMatchObject(refused)
    expect(readdirSync(cwd)).toEqual([])
  })
})

describe('what a shell would run beside the command is asked about with it', () => {
  test('a file or a function in the environment', async () => {
    const { runAllowed, cwd } = openRoom()
    writeFileSync(join(cwd, 'beside'), 'echo beside')
    const result = await runAllowed(['-c', 'echo main'], { env: { BASH_ENV: './beside' } })
    expect(result).toMatchObject({
      out: 'beside\nmain\n',
      asked: `env BASH_ENV=./beside bash -c 'echo main'`,
    })
  })

  test('its .bashrc is not read, as by the first of all shells it would be', async () => {
    const { run, home } = openRoom()
    writeFileSync(join(home, '.bashrc'), 'echo beside')
    for (const env of [{}, { SHLVL: '0' }, { SHLVL: 'x' }])
      expect(await run(['-c', 'echo main'], { env })).toMatchObject({ out: 'main\n' })
  })

  test('the agent’s own profile', async () => {
    const { run, runAllowed, home } = openRoom()
    expect(await run(['-lc', 'echo main'])).toMatchObject({ code: 0, out: expect.stringContaining('main') })
    writeFileSync(join(home, '.profile'), 'echo beside')
    const result = await runAllowed(['-lc', 'echo main'])
    expect(result).toMatchObject({
      out: expect.stringContaining('beside\nmain\n'),
      asked: `bash -lc 'echo main'`,
    })
  })
})

test('a script that never comes to its end is not waited for', async () => {
  const kept = new PassThrough()
  kept.write('echo one command of many\n')
  expect(await readInput(kept, 20)).toEqual({ problem: 'its end did not come' })
})
