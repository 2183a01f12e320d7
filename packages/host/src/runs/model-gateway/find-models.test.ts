import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { chosenModel } from '../../config/model.ts'
import { findModels } from './find-models.ts'
import { listModels } from './list-models.ts'

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  onTestFinished(
    () =>
      new Promise<void>(done => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  )
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A list in OpenAI's form, and what it was asked with. */
async function serveList(models: readonly object[]) {
  const asked: IncomingHttpHeaders[] = []
  const url = await serve(({ headers }, response) => {
    asked.push(headers)
    response.end(JSON.stringify({ object: 'list', data: models }))
  })
  return { url, asked }
}

/** Nobody listens there. */
const nowhere = 'http://127.0.0.1:9'
const none = { ollama: nowhere, llamacpp: nowhere, lmstudio: nowhere, vllm: nowhere }

test('keys in the environment and servers on this machine are found, with the models that people want first', async () => {
  const anthropic = await serveList([
    { id: 'claude-haiku-4-5', created_at: '2025-10-01T00:00:00Z' },
    { id: 'claude-sonnet-4-0', created_at: '2025-05-01T00:00:00Z' },
    { id: 'claude-sonnet-4-5', created_at: '2025-09-29T00:00:00Z' },
  ])
  const ollama = await serveList([
    { id: 'nomic-embed-text:latest', created: 9 },
    { id: 'llama3.2:3b', created: 1 },
    { id: 'qwen3:8b', created: 5 },
  ])
  const found = await findModels(
    { ANTHROPIC_API_KEY: 'sk-of-the-host', MODEL_API_KEY: 'sk-of-another', OPENAI_API_KEY: ' ' },
    { ...none, anthropic: anthropic.url, ollama: ollama.url },
  )
  expect(found).toEqual([
    {
      provider: 'anthropic',
      title: 'Anthropic',
      url: anthropic.url,
      keyVariable: 'ANTHROPIC_API_KEY',
      models: ['claude-sonnet-4-5', 'claude-sonnet-4-0', 'claude-haiku-4-5'],
      problem: undefined,
    },
    {
      provider: 'ollama',
      title: 'Ollama',
      url: ollama.url,
      keyVariable: undefined,
      models: ['qwen3:8b', 'llama3.2:3b'],
      problem: undefined,
    },
  ])
  expect(JSON.stringify(found)).not.toContain('sk-')
  expect(anthropic.asked[0]).toMatchObject({ 'x-api-key': 'sk-of-the-host' })
  // Whatever listens on a usual port gets no key.
  expect(JSON.stringify(ollama.asked)).not.toContain('sk-of')
})

test('a key that is refused is found with the reason, and an empty server with what is missing', async () => {
  const refusing = await serve((_, response) => response.writeHead(401).end('{}'))
  const empty = await serveList([])
  const found = await findModels(
    { OPENAI_API_KEY: 'sk-old' },
    { ...none, openai: refusing, lmstudio: empty.url },
  )
  expect(found).toMatchObject([
    { provider: 'openai', models: [], problem: expect.stringContaining('OPENAI_API_KEY') },
    { provider: 'lmstudio', models: [], problem: expect.stringContaining('no model yet') },
  ])
})

test.each<[string, RequestListener]>([
  ['refuses', (_, response) => response.writeHead(401).end()],
  ['answers with a page', (_, response) => response.end('<h1>Tomcat</h1>')],
  ['answers with another document', (_, response) => response.end('{"data":"none"}')],
  ['sends somebody elsewhere', (_, response) => response.writeHead(302, { location: '/v1/models' }).end()],
  ['breaks off', (_, response) => response.socket?.destroy()],
  ['has no such page', (_, response) => response.writeHead(404).end()],
])('a program on a usual port that %s is no model server', async (_, listener) => {
  expect(await findModels({}, { ...none, vllm: await serve(listener) })).toEqual([])
})

const listOf = (url: string, mostMs = 60_000) =>
  listModels(chosenModel({ provider: 'compatible', url }, {}), '', mostMs)

test('a list that does not end is not read to its end', async () => {
  const large = await serve((_, response) => {
    const more = () => response.writable && response.write('"'.padEnd(65_536, 'x'), more)
    response.write('{"data":[')
    more()
  })
  expect(await listOf(large)).toEqual({ models: undefined })
  const slow = await serve((_, response) => {
    response.write('{')
    const timer = setInterval(() => response.write(' '), 5)
    response.on('close', () => clearInterval(timer))
  })
  expect(await listOf(slow, 50)).toMatchObject({ problem: { cause: 'unreachable' } })
})

test('of a long list only the beginning is looked at, and an item that is none ends it there', async () => {
  const answering = (list: object) => serve((_, response) => response.end(JSON.stringify(list)))
  const good = Array.from({ length: 1000 }, (_, number) => ({ id: `m${number}` }))
  const endless = Array.from({ length: 100_000 }, () => 1)
  expect(await listOf(await answering({ data: [...good, ...endless] }))).toMatchObject({
    models: good.map(({ id }) => ({ name: id })),
  })
  expect(await listOf(await answering({ data: endless }))).toEqual({ models: undefined })
  expect(await listOf(await answering({ models: endless }))).toEqual({ models: undefined })
})

test('names that are none are left out', async () => {
  const { url } = await serveList([
    { id: 'good' },
    { id: '\u001b[2J' },
    { id: 'a b' },
    { id: 'x'.repeat(129) },
    { id: 7 },
    {},
    { id: 'dated', created: 'never' },
  ])
  expect(await listOf(url)).toEqual({
    models: [
      { name: 'good', at: 0 },
      { name: 'dated', at: 0 },
    ],
  })
})
