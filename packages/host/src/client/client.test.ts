import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { groupAnswer, groupsAnswer, statusAnswer } from '../api/answers.ts'
import { connect } from '../api.ts'
import { startDaemon } from '../assemble/main.ts'
import { acquire, DataDirectoryHeld } from '../base/lock.ts'
import { type Config, configSchema } from '../config.ts'
import { DaemonGone } from './over-socket.ts'

function makeConfig(): Config {
  const data = mkdtempSync(join(tmpdir(), 'hatchway-client-'))
  onTestFinished(() => rmSync(data, { recursive: true }))
  return { ...configSchema.parse({ timezone: 'UTC', logLevel: 'silent', durability: 'process' }), data }
}

const family = { folder: 'family', jid: 'chat:1', name: 'Family' }

test('one command waits for another to finish', async () => {
  const config = makeConfig()
  const first = await connect(config)
  const second = connect(config)
  await first.post('/groups', family, groupAnswer)
  await first.close()
  const client = await second
  expect(await client.get('/groups', groupsAnswer)).toMatchObject([family])
  await client.close()
})

test('somebody who holds the directory and does not answer is named in the end', async () => {
  const config = makeConfig()
  const lock = await acquire(config.data, { purpose: 'daemon' })
  await expect(connect(config, { patienceMs: 100 })).rejects.toBeInstanceOf(DataDirectoryHeld)
  lock.release()
})

test('a daemon that comes up while a command waits answers it', async () => {
  const config = makeConfig()
  const lock = await acquire(config.data)
  const starting = startDaemon(config)
  const connecting = connect(config)
  lock.release()
  // Either may be first; the other one waits its turn.
  const client = await connecting
  expect(await client.get('/status', statusAnswer)).toMatchObject({ data: config.data })
  await client.close()
  await (await starting).stop()
})

test('a daemon that ends between two questions is not missed', async () => {
  const config = makeConfig()
  const daemon = await startDaemon(config)
  const client = await connect(config)
  await client.post('/groups', family, groupAnswer)
  expect(client.daemon).toBe(true)
  await daemon.stop()
  expect(await client.get('/groups', groupsAnswer)).toMatchObject([family])
  expect(client.daemon).toBe(false)
  await client.close()
})

test('without a daemon there are no events to wait for', async () => {
  const client = await connect(makeConfig())
  await client.events('/events', () => {
    throw new Error('there should be none')
  })
  await client.close()
})

test('whoever only wants to ask a daemon never holds the directory it needs', async () => {
  const config = makeConfig()
  const onlyDaemon = () => connect(config, { daemonOnly: true })
  await expect(onlyDaemon()).rejects.toBeInstanceOf(DaemonGone)
  const daemon = await startDaemon(config)
  const client = await onlyDaemon()
  expect(await client.overview()).toMatchObject({ groups: 0, status: { data: config.data } })
  const enough = new AbortController()
  const heard: unknown[] = []
  await client.feed(
    '/feed',
    (event, id) => {
      heard.push({ ...event, id })
      enough.abort()
    },
    enough.signal,
  )
  expect(heard).toEqual([{ kind: 'hello', complete: true, id: expect.any(String) }])
  await daemon.stop()
  await expect(client.get('/status', statusAnswer)).rejects.toBeInstanceOf(DaemonGone)
  ;(await acquire(config.data)).release()
})
