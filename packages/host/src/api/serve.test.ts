import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { connect } from '../api.ts'
import { startDaemon } from '../assemble/main.ts'
import { type Config, configSchema } from '../config.ts'
import { statusAnswer } from './answers.ts'
import { announcedSocket, usualSocket } from './socket.ts'

const configFor = (data: string): Config => ({
  ...configSchema.parse({ timezone: 'UTC', logLevel: 'silent', durability: 'process' }),
  data,
})
function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'hatchway-serve-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

test('only the daemon’s own user may use the socket', async () => {
  const data = folder()
  const daemon = await startDaemon(configFor(data))
  const stat = lstatSync(usualSocket(data))
  expect(stat.isSocket()).toBe(true)
  expect(stat.mode & 0o777).toBe(0o600)
  expect(lstatSync(dirname(usualSocket(data))).mode & 0o777).toBe(0o700)
  await daemon.stop()
  expect(existsSync(usualSocket(data))).toBe(false)
})

test('a socket that a killed daemon left behind is replaced', async () => {
  const data = folder()
  mkdirSync(join(data, 'state'), { mode: 0o700 })
  const code = `require('net').createServer().listen(${JSON.stringify(usualSocket(data))}, () => console.log('there'))`
  const child = spawn(process.execPath, ['--eval', code], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(lstatSync(usualSocket(data)).isSocket()).toBe(true)

  const daemon = await startDaemon(configFor(data))
  const client = await connect(configFor(data))
  expect(client.daemon).toBe(true)
  await client.close()
  await daemon.stop()
})

test('something else in the socket’s place is left alone, and said', async () => {
  const data = folder()
  mkdirSync(join(data, 'state'), { mode: 0o700 })
  writeFileSync(usualSocket(data), 'mine')
  await expect(startDaemon(configFor(data))).rejects.toThrow('is in the way')
  expect(readFileSync(usualSocket(data), 'utf8')).toBe('mine')
})

test('a data directory with a path too long for a socket is served all the same', async () => {
  const data = join(folder(), 'deep-'.repeat(20), 'deeper-'.repeat(20))
  mkdirSync(data, { recursive: true })
  const config = configFor(data)
  const daemon = await startDaemon(config)
  const socket = announcedSocket(data)
  expect(Buffer.byteLength(usualSocket(data))).toBeGreaterThan(107)
  expect(socket.startsWith(tmpdir())).toBe(true)
  expect(lstatSync(dirname(socket)).mode & 0o777).toBe(0o700)
  const client = await connect(config)
  expect(client.daemon).toBe(true)
  expect(await client.get('/status', statusAnswer)).toMatchObject({ data })
  await client.close()
  await daemon.stop()
  expect(existsSync(dirname(socket))).toBe(false)
  expect(readdirSync(join(data, 'state'))).not.toContain('daemon.json')
})

test('a reader that has stopped reading does not keep the daemon from ending', async () => {
  const data = folder()
  const daemon = await startDaemon(configFor(data))
  const request = get({ socketPath: usualSocket(data), path: '/events', agent: false })
  const [response] = await once(request, 'response')
  response.pause()
  response.on('error', () => {})
  await daemon.stop()
  request.destroy()
})
