import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { everythingServer, filesystemServer, lend, type Rig, steps, temporaryFolder } from './testing/rig.ts'

/** Two servers that anybody can have from npm, as they are. */

const text = (text: unknown) => ({ content: [{ type: 'text', text }] })

/** What every way to reach server-everything has to show. */
async function showEverything(rig: Rig) {
  expect(await rig.call('odd_echo', { message: 'Grüße 你好' })).toEqual(text('Echo: Grüße 你好'))
  expect(await rig.call('odd_get-sum', { a: 2, b: 40 })).toEqual(text('The sum of 2 and 40 is 42.'))

  const told = steps()
  const long = await rig.call('odd_trigger-long-running-operation', { duration: 0.3, steps: 3 }, told)
  expect(long).toEqual(text(expect.stringContaining('completed')))
  expect(told.steps).toEqual([1, 2, 3].map(progress => ({ progress, total: 3 })))

  const structured = await rig.call('odd_get-structured-content', { location: 'Chicago' })
  expect(structured.structuredContent).toMatchObject({ temperature: 36 })

  const image = await rig.call('odd_get-tiny-image')
  expect(image.content).toContainEqual({ type: 'image', data: expect.any(String), mimeType: 'image/png' })

  const annotated = await rig.call('odd_get-annotated-message', { messageType: 'error', includeImage: true })
  expect(annotated.content).toContainEqual(
    expect.objectContaining({ type: 'text', annotations: { audience: ['user', 'assistant'], priority: 1 } }),
  )

  const links = await rig.call('odd_get-resource-links', { count: 2 })
  expect(links.content).toContainEqual(expect.objectContaining({ type: 'resource_link' }))

  const wrong = await rig.call('odd_get-sum', { a: 'two' })
  expect(wrong).toMatchObject({ isError: true })
}

describe('server-everything over stdio', () => {
  const command = [process.execPath, everythingServer]

  test('its tools are shown as they are, and answer as they do', async () => {
    const rig = lend({ command })
    await rig.up()
    expect(rig.service.state?.()).toEqual({
      ok: true,
      text: expect.stringMatching(/^It is up and lends \d+ tools\.$/),
    })
    expect(rig.tool('odd_get-structured-content')).toMatchObject({
      service: 'mcp:odd',
      title: 'Get Structured Content Tool',
      description: expect.stringContaining('structured content'),
      inputSchema: { type: 'object', required: ['location'] },
      outputSchema: { type: 'object', required: ['temperature', 'conditions', 'humidity'] },
      annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
      answers: 'content',
      repeatable: true,
      groups: 'all',
      labels: {},
    })
    await showEverything(rig)
  })

  test('its resources and prompts are listed and read, page by page', async () => {
    const rig = lend({ command })
    await rig.up()
    const told = async (name: string, input: object = {}) => {
      const { content } = await rig.call(name, input)
      const [first] = Array.isArray(content) ? content : []
      return JSON.parse(first.text)
    }
    const { resources, resourceTemplates } = await told('odd_list_resources')
    expect(resourceTemplates.length).toBeGreaterThan(0)
    const [{ uri }] = resources
    expect(await rig.call('odd_read_resource', { uri })).toMatchObject({
      content: [{ type: 'resource', resource: { uri, text: expect.any(String) } }],
    })
    await expect(rig.call('odd_read_resource', { uri: 'nothing://here' })).rejects.toMatchObject({
      code: 'service_failed',
    })
    const { prompts } = await told('odd_list_prompts')
    expect(prompts).toContainEqual(expect.objectContaining({ name: 'args-prompt' }))
    const { content } = await rig.call('odd_get_prompt', { name: 'args-prompt', arguments: { city: 'Ulm' } })
    expect(JSON.stringify(content)).toContain('Ulm')
    expect(rig.tool('odd_read_resource')).toMatchObject({ groups: 'all', repeatable: true, labels: {} })
  })

  test('it sees three harmless variables and what it was given, and nothing else of the host', async () => {
    const environment = {
      PATH: process.env.PATH,
      HOME: '/nowhere',
      LANG: 'C.UTF-8',
      SECRET: 'not for it',
      TOKEN: 'for it',
      OTHER: 'renamed',
    }
    const env = { TOKEN: { variable: 'TOKEN' }, KEY: { variable: 'OTHER', prefix: 'was ' }, MODE: 'fast' }
    const rig = lend({ command, env }, {}, environment)
    await rig.up()
    const { content } = await rig.call('odd_get-env')
    const [first] = Array.isArray(content) ? content : []
    const { HATCHWAY_RUN, ...seen } = JSON.parse(first.text)
    expect(seen).toEqual({
      PATH: process.env.PATH,
      HOME: '/nowhere',
      LANG: 'C.UTF-8',
      TOKEN: 'for it',
      KEY: 'was renamed',
      MODE: 'fast',
    })
  })
})

describe('server-everything over HTTP', () => {
  const servers: ReturnType<typeof spawn>[] = []
  afterEach(() => {
    for (const server of servers.splice(0)) server.kill('SIGKILL')
  })

  async function listening(): Promise<string> {
    // It takes no port 0, so a free one is looked for; somebody else may be faster, and then the next one is tried.
    for (;;) {
      const port = await freePort()
      const server = spawn(process.execPath, [everythingServer, 'streamableHttp'], {
        env: { ...process.env, PORT: String(port) },
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      servers.push(server)
      const isUp = await new Promise<boolean>(resolve => {
        server.stderr?.on('data', chunk => String(chunk).includes('listening on port') && resolve(true))
        server.once('exit', () => resolve(false))
      })
      if (isUp) return `http://127.0.0.1:${port}/mcp`
    }
  }

  test('its tools answer as they do over stdio', async () => {
    const rig = lend({ url: await listening() })
    await rig.up()
    await showEverything(rig)
  })

  test('after it was killed and is there again, calls go on', async () => {
    const url = await listening()
    const rig = lend({ url })
    await rig.up()
    await rig.call('odd_echo', { message: 'one' })
    const [server] = servers
    server?.kill('SIGKILL')
    await once(server ?? spawn('true'), 'exit')
    await rig.until(({ ok }) => !ok)
    servers.push(
      spawn(process.execPath, [everythingServer, 'streamableHttp'], {
        env: { ...process.env, PORT: new URL(url).port },
        stdio: 'ignore',
      }),
    )
    await rig.up()
    expect(await rig.call('odd_echo', { message: 'two' })).toEqual(text('Echo: two'))
  })
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address ? address.port : 0
}

describe('server-filesystem over stdio', () => {
  test('reads and writes in the folder it was given, and says no to the rest', async () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'note.txt'), 'from the host')
    const rig = lend({ command: process.execPath, args: [filesystemServer, folder] })
    await rig.up()
    const read = await rig.call('odd_read_text_file', { path: join(folder, 'note.txt') })
    expect(read).toMatchObject(text('from the host'))
    await rig.call('odd_write_file', { path: join(folder, 'answer.txt'), content: 'from the agent' })
    expect(readFileSync(join(folder, 'answer.txt'), 'utf8')).toBe('from the agent')
    const outside = await rig.call('odd_read_text_file', { path: '/etc/hostname' })
    expect(outside).toMatchObject({ isError: true, ...text(expect.stringContaining('denied')) })
    expect(rig.tool('odd_read_text_file').repeatable).toBe(true)
    expect(rig.tool('odd_edit_file').repeatable).toBe(false)
  })

  test('only the tools that are named are lent, each as it is set', async () => {
    const folder = temporaryFolder()
    const rig = lend({
      command: [process.execPath, filesystemServer, folder],
      groups: ['family'],
      timeoutMs: 5000,
      labels: { public_source: 'no' },
      tools: {
        read_text_file: { name: 'read_note', groups: 'all', answerBytes: 100 },
        write_file: { labels: { dangerous_writes: 'yes' }, repeatable: true },
        fly: {},
      },
    })
    await rig.up()
    expect(rig.service.tools()).toMatchObject([
      {
        name: 'read_note',
        groups: 'all',
        answerBytes: 100,
        timeoutMs: 5000,
        labels: { public_source: 'no' },
      },
      {
        name: 'odd_write_file',
        groups: ['family'],
        labels: { public_source: 'no', dangerous_writes: 'yes' },
        repeatable: true,
      },
    ])
    expect(rig.service.state?.().text).toBe('It is up and lends 2 tools. There is no tool "fly".')
    expect(rig.warnings.join()).toContain('There is no tool')
  })
})
