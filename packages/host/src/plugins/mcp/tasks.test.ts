import { createServer } from 'node:http'
import * as library from '@modelcontextprotocol/client'
import { expect, onTestFinished, test } from 'vitest'
import { failureOf } from './failure.ts'
import { callAsTask } from './tasks.ts'
import { lend } from './testing/rig.ts'

const options = { signal: new AbortController().signal, ttlMs: 1000, said() {} }

/** A client whose server begins a task and answers no later question. */
function failingClient(error: Error) {
  const client = new library.Client({ name: 'test', version: '1' })
  const asked: string[] = []
  client.request = async ({ method }: { method: string }) => {
    asked.push(method)
    if (method !== 'tools/call') throw error
    return { task: { taskId: 't', status: 'working', pollInterval: 1 } }
  }
  return { client, asked }
}

test.each([
  ['it is gone', new Error('Not connected')],
  [
    'nobody listens',
    new TypeError('fetch failed', { cause: Object.assign(new Error('a'), { code: 'ECONNREFUSED' }) }),
  ],
  ['the pipe is closed', Object.assign(new Error('a'), { code: 'EPIPE' })],
])('once a task is known, no failure says that nothing was begun: %s', async (_, error) => {
  expect(failureOf(error, library).begun).toBe('no')
  const { client, asked } = failingClient(error)
  const thrown = await callAsTask(client, { name: 'a', arguments: {} }, options).catch(error => error)
  expect(asked.slice(0, 2)).toEqual(['tools/call', 'tasks/get'])
  expect(failureOf(thrown, library)).toMatchObject({
    begun: 'perhaps',
    text: failureOf(error, library).text,
  })
})

test('a task whose server forgets the session is not begun a second time', async () => {
  let begun = 0
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { id, method } = request.method === 'POST' ? JSON.parse(body) : {}
    const say = (result: object) =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, result }))
    if (method === 'initialize')
      return say({
        protocolVersion: '2025-06-18',
        capabilities: { tools: {} },
        serverInfo: { name: 't', version: '1' },
      })
    if (method === 'tools/list')
      return say({
        tools: [{ name: 'pay', inputSchema: { type: 'object' }, execution: { taskSupport: 'required' } }],
      })
    if (method === 'tools/call') {
      begun++
      return say({ task: { taskId: 't', status: 'working', pollInterval: 1 } })
    }
    if (method === 'ping') return say({})
    response.writeHead(id === undefined ? 202 : 404).end()
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  const rig = lend({ url: `http://127.0.0.1:${address.port}/mcp` })
  await rig.up()
  await expect(rig.call('odd_pay')).rejects.toMatchObject({
    code: 'service_failed',
    message: expect.stringContaining('It may have been done or not'),
  })
  expect(begun).toBe(1)
})
