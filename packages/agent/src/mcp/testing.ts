import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, unlinkSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Services } from '@hatchway/protocol'
import { post } from '@hatchway/spool'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { onTestFinished } from 'vitest'
import { z } from 'zod'
import { failureKey } from './tool.ts'

/** What the tests of the MCP server are built from: real folders, the server as clients start it, real clients, a real host. */

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-mcp-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A group's directory as the host makes it. */
export function ipcFolder(): string {
  const folder = temporaryFolder()
  for (const name of ['messages', 'tasks', 'input', 'responses']) mkdirSync(join(folder, name))
  return folder
}

/** Waits for a condition; the test's own time limit ends it. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(2)
}

export const jsonFiles = (directory: string): string[] =>
  readdirSync(directory).filter(name => name.endsWith('.json'))

const envelope = z.object({
  version: z.literal(1),
  id: z.string(),
  type: z.string(),
  payload: z.record(z.string(), z.unknown()),
  sent_at: z.iso.datetime(),
})

/** The only file that lies in a directory, once it does. */
export async function onlyFile(
  directory: string,
): Promise<z.infer<typeof envelope> & { path: string; name: string }> {
  await until(() => jsonFiles(directory).length > 0)
  const [name = '', ...others] = jsonFiles(directory)
  if (others.length > 0) throw new Error(`there are ${others.length + 1} files in ${directory}`)
  const path = join(directory, name)
  return { ...envelope.parse(JSON.parse(readFileSync(path, 'utf8'))), path, name }
}

type Listing = Services['tools'][number]

/** A service in services.json. */
export const listing = (name: string, more: Partial<Listing> = {}): Listing => ({
  name,
  title: `The tool ${name}`,
  description: `does ${name}`,
  service: 'test',
  input_schema: { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] },
  annotations: { readOnlyHint: true, openWorldHint: false },
  answers: 'facts',
  timeout_ms: 60_000,
  ...more,
})

/** What a host does with services, by hand: so that a test decides when, and in what order. */
export function playHost(ipc = ipcFolder()) {
  const tasks = join(ipc, 'tasks')
  const responses = join(ipc, 'responses')
  return {
    ipc,
    tasks,
    responses,
    offer(tools: readonly Listing[], questions: Services['questions'] = null) {
      post(ipc, JSON.stringify({ tools, questions }), { name: 'services.json' })
    },
    /** takes the file as the host does */
    async take() {
      const file = await onlyFile(tasks)
      unlinkSync(file.path)
      return file
    },
    progress(id: string, step: object) {
      post(responses, JSON.stringify({ version: 1, id, ...step }), { name: `${id}.progress.json` })
    },
    answer(id: string, result: object) {
      rmSync(join(responses, `${id}.progress.json`), { force: true })
      post(responses, JSON.stringify({ version: 1, id, ok: true, result }), { name: `${id}.json` })
    },
    refuse(id: string, code: string, message: string) {
      const error = { code, message }
      post(responses, JSON.stringify({ version: 1, id, ok: false, error }), { name: `${id}.json` })
    },
  }
}

/** as sandboxes have it; from the sources each start would take twice as long */
export const agent = join(import.meta.dirname, '..', '..', 'dist', 'agent.mjs')

type Environment = Record<string, string>

const { PATH = '', TEST_COMPILE_CACHE = '' } = process.env
const usual = { PATH, TZ: 'Europe/Berlin', NODE_COMPILE_CACHE: TEST_COMPILE_CACHE }

/** The server as a bare process, to be spoken to line by line. */
export interface Bare {
  child: ChildProcessWithoutNullStreams
  /** one JSON-RPC message */
  send(message: object): void
  out(): string
  err(): string
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

export function startBare(environment: Environment, cwd = tmpdir()): Bare {
  const child = spawn(process.execPath, [agent, 'mcp'], { cwd, env: { ...usual, ...environment } })
  onTestFinished(() => void child.kill('SIGKILL'))
  let out = ''
  let err = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text
  })
  return {
    child,
    send: message => void child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`),
    out: () => out,
    err: () => err,
    exited: once(child, 'close').then(([code, signal]) => ({ code, signal })),
  }
}

const content = z.array(z.looseObject({ type: z.literal('text'), text: z.string() })).length(1)
const callResult = z.object({
  content,
  structuredContent: z.record(z.string(), z.unknown()).optional(),
  isError: z.boolean().optional(),
  _meta: z.record(z.string(), z.unknown()).optional(),
})

export interface Called {
  /** what a client that shows only the text shows */
  text: string
  /** what a client that shows only the structured content shows */
  facts: Record<string, unknown> | undefined
  failure: unknown
}

const calledFrom = (answer: unknown): Called => {
  const { content, structuredContent, isError = false, _meta } = callResult.parse(answer)
  const failure = _meta?.[failureKey]
  if (isError !== (failure !== undefined)) throw new Error(`an error without its code: ${content[0]?.text}`)
  return { text: content[0]?.text ?? '', facts: structuredContent, failure }
}

interface CallOptions {
  signal?: AbortSignal
  timeout?: number
  onprogress?: (progress: {
    progress: number
    total?: number | undefined
    message?: string | undefined
  }) => void
}

export interface Connected {
  tools(): Promise<
    readonly {
      name: string
      description?: string | undefined
      annotations?: object | undefined
      outputSchema?: object | undefined
    }[]
  >
  /** how often it was told that they are others */
  toolChanges(): number
  call(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<Called>
  /** the result as it came */
  callRaw(name: string, args?: Record<string, unknown>): Promise<unknown>
  close(): Promise<void>
}

const implementation = { name: 'test', version: '1' }

const server = (environment: Environment) => ({
  command: process.execPath,
  args: [agent, 'mcp'],
  env: { ...usual, ...environment },
  stderr: 'pipe' as const,
})

function countChanges() {
  let changes = 0
  const onChanged = () => {
    changes++
  }
  return { listener: { autoRefresh: false, debounceMs: 0, onChanged }, count: () => changes }
}

const connectV2 =
  (mode: 'legacy' | { pin: string }) =>
  async (environment: Environment): Promise<Connected> => {
    const changes = countChanges()
    const client = new Client(implementation, {
      versionNegotiation: { mode },
      listChanged: { tools: changes.listener },
    })
    onTestFinished(() => client.close())
    await client.connect(new StdioClientTransport(server(environment)))
    return {
      tools: async () => (await client.listTools()).tools,
      toolChanges: changes.count,
      call: async (name, args = {}, options = {}) =>
        calledFrom(await client.callTool({ name, arguments: args }, options)),
      callRaw: (name, args = {}) => client.callTool({ name, arguments: args }),
      close: () => client.close(),
    }
  }

async function connectV1(environment: Environment): Promise<Connected> {
  const changes = countChanges()
  const client = new ClientV1(implementation, { listChanged: { tools: changes.listener } })
  onTestFinished(() => client.close())
  await client.connect(new TransportV1(server(environment)))
  // Only then it holds results to the output schemas.
  await client.listTools()
  return {
    tools: async () => (await client.listTools()).tools,
    toolChanges: changes.count,
    call: async (name, args = {}, options = {}) =>
      calledFrom(await client.callTool({ name, arguments: args }, undefined, options)),
    callRaw: (name, args = {}) => client.callTool({ name, arguments: args }),
    close: () => client.close(),
  }
}

/** Every client there is, by the name it is told apart by in tests. */
export const clients = {
  'client v2, protocol 2026-07-28': connectV2({ pin: '2026-07-28' }),
  'client v2, handshake of 2025': connectV2('legacy'),
  'client v1': connectV1,
}

export const connect = clients['client v2, protocol 2026-07-28']

const hatchway = join(import.meta.dirname, '..', '..', '..', 'cli', 'bin', 'hatchway.mjs')

export interface RunningHost {
  data: string
  /** what the server is started with for a group */
  environment(folder: string, main?: boolean): Environment
  /** what the daemon's socket answers; a body is posted */
  ask(path: string, body?: object): Promise<unknown>
  pause(): void
  resume(): void
}

/** The daemon as people start it, with the groups main, a and b, and no agents of its own. */
export async function startHost(settings: Environment = {}): Promise<RunningHost> {
  const data = temporaryFolder()
  const env = {
    ...process.env,
    HATCHWAY_DATA: data,
    HATCHWAY_TIMEZONE: 'Europe/Berlin',
    HATCHWAY_DURABILITY: 'process',
    HATCHWAY_LOG_LEVEL: 'warn',
    HATCHWAY_AGENTS_ENABLED: 'no',
    HATCHWAY_WEB_ENABLED: 'no',
    ...settings,
  }
  const child = spawn(process.execPath, [hatchway, 'up', '--create-main'], { cwd: data, env })
  let output = ''
  const exited = once(child, 'close')
  onTestFinished(async () => {
    child.kill('SIGCONT')
    child.kill('SIGTERM')
    await exited
  })
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  await until(() => {
    if (child.exitCode !== null) throw new Error(`the daemon ended:\n${output}`)
    return /\bready\b/.test(output)
  })
  const ask = async (path: string, body?: object): Promise<unknown> => {
    const outgoing = request({
      socketPath: join(data, 'state', 'api.sock'),
      path,
      method: body ? 'POST' : 'GET',
      headers: { 'content-type': 'application/json' },
    }).end(body && JSON.stringify(body))
    const [response] = await once(outgoing, 'response')
    const answer = await json(response)
    if (response.statusCode >= 300) throw new Error(`${path}: ${JSON.stringify(answer)}`)
    return answer
  }
  for (const folder of ['a', 'b']) {
    await ask('/groups', { folder, jid: `${folder}@chat`, name: folder, main: false, dialect: 'hatchway' })
  }
  return {
    data,
    environment: (folder, main = folder === 'main') => ({
      HATCHWAY_IPC: join(data, 'ipc', folder),
      HATCHWAY_MAIN: main ? '1' : '0',
    }),
    ask,
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
  }
}
