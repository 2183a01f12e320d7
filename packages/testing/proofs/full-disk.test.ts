import { execFileSync, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { checkupAnswer, overviewAnswer } from '../../host/src/api/answers.ts'
import { chatStatusAnswer } from '../../host/src/api/chat-answers.ts'
import { usualSocket } from '../../host/src/api/socket.ts'
import { layoutOf } from '../../host/src/base/layout.ts'
import { overSocket } from '../../host/src/client/over-socket.ts'
import { disk } from '../../host/src/doctor/disk.ts'
import { configFor } from '../src/daemon/in-process.ts'
import { launch } from '../src/daemon/process.ts'
import { temporaryFolder } from '../src/folders.ts'
import { hatchwayProgram } from '../src/paths.ts'
import { until } from '../src/until.ts'

/** The daemon on a small disk of its own, which nobody else sees. Who is not root needs a user namespace for that. */
const withSmallDisk = (data: string) => [
  'unshare',
  ...(process.getuid?.() === 0 ? ['--mount'] : ['--map-current-user', '--keep-caps', '--mount']),
  'sh',
  '-c',
  `mount -t tmpfs -o size=64m,mode=755 small ${data} && exec "$@"`,
  'sh',
]

function isPermitted(): boolean {
  try {
    const folder = temporaryFolder('small')
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const [command = '', ...args] = [...withSmallDisk(folder), 'true']
    execFileSync(command, args, { stdio: 'ignore' })
    return true
  } catch (error) {
    if (process.env.CI) throw error
    return false
  }
}

const commands = 24
const id = (number: number) => `full-${number}`

test('a full disk is said, waited out, and nothing is lost over it (needs a mount)', async ({ skip }) => {
  skip(!isPermitted(), 'mounts in namespaces of one’s own are not permitted here')
  const data = temporaryFolder('full')
  onTestFinished(() => rmSync(data, { recursive: true, force: true }))
  let output = ''
  const daemon = launch(data, {
    under: withSmallDisk(data),
    args: ['--create-main'],
    hear: text => {
      output += text
    },
  })
  onTestFinished(() => daemon.kill())
  await daemon.ready
  let isGone = false
  daemon.exited.then(() => {
    isGone = true
  })
  const seen = `/proc/${daemon.pid}/root${data}`
  const main = join(layoutOf(seen).ipc, 'main')
  const socket = overSocket(usualSocket(seen))
  const ask = async (method: 'GET' | 'POST', path: string) =>
    JSON.parse((await socket.request(method, path, method === 'POST' ? {} : undefined)).text)
  const problem = async () => overviewAnswer.parse(await ask('GET', '/overview')).status.problem
  expect(await problem()).toBe(null)

  // So much that the database has no place for it, given while the host does not move.
  process.kill(daemon.pid, 'SIGSTOP')
  const text = 'x'.repeat(900_000)
  const put = (number: number, type: string, payload: object) =>
    writeFileSync(
      join(main, 'tasks', `${id(number)}.json`),
      JSON.stringify({ version: 1, id: id(number), type, payload }),
    )
  put(0, 'schedule_task', {
    prompt: 'still there',
    schedule_type: 'once',
    schedule_value: '2099-01-01T00:00',
  })
  for (let number = 1; number < commands; number++) put(number, 'send_message', { text })
  const filler = join(seen, 'filler')
  const file = openSync(filler, 'w')
  const block = Buffer.alloc(65_536)
  const fill = () => {
    for (;;) writeSync(file, block)
  }
  expect(fill).toThrow('ENOSPC')
  closeSync(file)
  process.kill(daemon.pid, 'SIGCONT')

  await until('the host says that it has no room', async () => (await problem()) !== null)
  expect(output).toContain('the data directory cannot be written')
  const { problem: told, ...checkup } = checkupAnswer.parse(await ask('POST', '/checkup'))
  expect(told).toContain('Make room')
  expect(chatStatusAnswer.parse(await ask('GET', '/api/status')).warning).toBe(told)
  const patient = {
    config: configFor(seen),
    plugins: [],
    layout: layoutOf(seen),
    lockOwner: 'daemon' as const,
  }
  const findings = disk({
    ...patient,
    checkup: { ...checkup, problem: told },
    environment: {},
    now: Date.now,
  })
  expect(findings[0]).toMatchObject({ state: 'bad', says: expect.stringContaining('Make room') })

  rmSync(filler)
  const isAnswered = (number: number): boolean => {
    try {
      return JSON.parse(readFileSync(join(main, 'responses', `${id(number)}.json`), 'utf8')).ok === true
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false
      throw error
    }
  }
  await until('every command is answered', () =>
    Array.from({ length: commands }, (_, number) => number).every(isAnswered),
  )
  await until('the snapshot is written', () =>
    readFileSync(join(main, 'current_tasks.json'), 'utf8').includes('still there'),
  )
  await until('all is well again', async () => (await problem()) === null)
  expect(output).toContain('can be written again')
  expect(isGone).toBe(false)
})

test('a log on a full disk does not end the host', async () => {
  const data = temporaryFolder('full-log')
  onTestFinished(() => rmSync(data, { recursive: true, force: true }))
  const full = openSync('/dev/full', 'w')
  onTestFinished(() => closeSync(full))
  const daemon = spawn(process.execPath, [hatchwayProgram, 'up', '--data', data, '--create-main'], {
    env: {
      ...process.env,
      HATCHWAY_LOG_LEVEL: 'debug',
      HATCHWAY_AGENTS_ENABLED: 'no',
      HATCHWAY_WEB_ENABLED: 'no',
    },
    stdio: ['ignore', full, full],
  })
  const exited = new Promise<number | null>(resolve => daemon.on('exit', resolve))
  onTestFinished(() => void daemon.kill('SIGKILL'))
  const answer = join(layoutOf(data).ipc, 'main', 'responses', 'first.json')
  const request = { version: 1, id: 'first', type: 'send_message', payload: { text: 'hello' } }
  const refused = '{"version":1,"type":"nonsense"}'
  let isPosted = false
  const isAnswered = () => {
    try {
      if (!isPosted) {
        // What is refused is logged.
        writeFileSync(join(layoutOf(data).ipc, 'main', 'tasks', 'a.json'), refused)
        writeFileSync(join(layoutOf(data).ipc, 'main', 'tasks', 'b.json'), JSON.stringify(request))
      }
      isPosted = true
      return JSON.parse(readFileSync(answer, 'utf8')).ok === true
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false
      throw error
    }
  }
  await until('it answers', () => daemon.exitCode !== null || isAnswered())
  expect(daemon.exitCode).toBe(null)
  daemon.kill('SIGTERM')
  expect(await exited).toBe(0)
})
