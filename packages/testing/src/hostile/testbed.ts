import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as listen } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { post } from '@hatchway/spool'
import { layoutOf } from '../../../host/src/base/layout.ts'
import { openInstallation } from '../daemon/installation.ts'
import { assetsBeside, installationIn } from './assets.ts'
import { type Canary, plantCanary } from './canary.ts'
import type { Known } from './inside/attack.ts'
import { goodAnswer } from './inside/orders.ts'
import type { SandboxChoice } from './options.ts'
import { makeSamples } from './samples.ts'

/**
 * A daemon as people start it, with groups made ready: a main group, one that asks all along, one that has
 * something to lose, and the hostile one, whose agent is a program of ours in a real sandbox.
 */
export const evil = { folder: 'evil', jid: 'local:evil', name: 'Evil' }
const witness = { folder: 'witness', jid: 'local:witness', name: 'Witness' }
const victim = { folder: 'victim', jid: 'local:victim', name: 'Victim' }
const mainGroup = { folder: 'main', jid: 'local:main' }

/** Must not be seen by anybody but the provider. */
export const modelKey = 'sk-hostile-0123456789abcdef0123456789abcdef'

export type Testbed = Awaited<ReturnType<typeof prepareTestbed>>

export interface TestbedOptions {
  sandbox: SandboxChoice
  seed: number
  marker: string
  secret: string
  samples: number
  docker: NodeJS.ProcessEnv | undefined
  atEnd(close: () => Promise<void>): void
  hear(text: string): void
  /** the longest turn */
  runMs: number
}

export async function prepareTestbed(options: TestbedOptions) {
  const { sandbox, docker, marker } = options
  const upstream = await serveProvider(options.atEnd)
  const decoy = await serveDecoy(options.atEnd)
  const node = '/opt/hatchway/node'
  const installation = await openInstallation({
    sandbox,
    atEnd: options.atEnd,
    hear: options.hear,
    environment: home => {
      for (const folder of ['person', 'temporary', 'rig', 'program']) mkdirSync(join(home, folder))
      const allowed = join(home, 'mounts-allowed')
      writeFileSync(allowed, `${join(home, 'program')}\n`)
      const program = '/workspace/extra/evil/hostile/inside/agent.process.ts'
      const config = {
        // Files that its writer never finishes, and directories without events, are looked at soon.
        ...{ graceMs: 300, sweepMs: 1000, mountsAllowed: allowed },
        // So that a flood is over limits, and what is within them is over soon.
        limits: { filesWaiting: 5000, commandsPerMinute: 600_000 },
        agents: {
          ...{ driver: 'command', command: ['/bin/sh', '-c', `cat >/dev/null; echo "${goodAnswer}"`] },
          ...{ idleMs: 1000, closeMs: 3000, runMs: options.runMs },
          ...{ memoryMb: 512, processes: 256, temporaryMb: 64 },
        },
        model: { url: upstream.url },
        services: { questionMs: 86_400_000, plugins: [join(import.meta.dirname, 'bait.service.ts')] },
        groups: {
          evil: {
            command: [node, program],
            mounts: [{ from: join(home, 'program'), to: 'evil', writable: false }],
            containsSecrets: true,
          },
        },
      }
      writeFileSync(join(home, 'hatchway.config.mjs'), `export default ${JSON.stringify(config)}`)
      return {
        HATCHWAY_CONFIG: join(home, 'hatchway.config.mjs'),
        HATCHWAY_RIG_DIR: join(home, 'rig'),
        ANTHROPIC_API_KEY: modelKey,
        HOME: join(home, 'person'),
        TMPDIR: join(home, 'temporary'),
        ...(docker
          ? { DOCKER_HOST: docker.DOCKER_HOST ?? '', DOCKER_CONFIG: docker.DOCKER_CONFIG ?? '' }
          : {}),
      }
    },
  })
  const { data, home } = installation
  // What it leaves may be deeper than a path can be long, which rm gets along with.
  options.atEnd(async () => void spawnSync('rm', ['-rf', join(data, 'groups')]))
  const layout = layoutOf(data)
  for (const group of [evil, witness, victim]) await installation.addGroup(group)

  /** something that a group's agent would ask for; its answer */
  const asks = async (folder: string, id: string, type: string, payload: object): Promise<unknown> => {
    const directory = join(layout.ipc, folder, 'tasks')
    const { uid, gid } = lstatSync(directory)
    post(directory, JSON.stringify({ version: 1, id, type, payload }), { owner: { uid, gid } })
    return id
  }
  const answered = async (folder: string, id: string): Promise<Record<string, unknown>> => {
    const path = join(layout.ipc, folder, 'responses', `${id}.json`)
    while (!existsSync(path)) await sleep(20)
    return JSON.parse(readFileSync(path, 'utf8'))
  }
  // What others have: tasks, a list, memories, an open question, a request under way.
  const plain = { prompt: 'water the plants', schedule_type: 'interval', schedule_value: '36000000' }
  const taskIds = ['victim-task-1', 'victim-task-2', '424242']
  for (const task_id of taskIds)
    await asks('victim', `task-${task_id}`, 'schedule_task', { ...plain, task_id })
  const service = (id: string, tool: string, values: object) =>
    asks('victim', id, 'call_service', { tool, arguments: values })
  await service('todo-1', 'add_todo', { content: 'feed the cat' })
  await service('memory-1', 'save_memory', { key: 'door', content: 'the door code is 4711' })
  await asks('victim', 'question-1', 'ask_user', {
    questions: [{ question: 'Tea?', options: [{ label: 'yes' }] }],
  })
  for (const id of [...taskIds.map(id => `task-${id}`), 'todo-1', 'memory-1']) {
    const answer = await answered('victim', id)
    if (answer.ok !== true) throw new Error(`the testbed is not ready: ${JSON.stringify(answer)}`)
  }

  // The store is its daemon's alone while that runs.
  await installation.daemon()?.stop()
  const before = assetsBeside(evil.folder, layout.state)
  const installationId = installationIn(layout.state)
  await installation.up()

  const canaries: Canary[] = [
    [home, 'outside'],
    [layout.state, 'canary'],
    [join(layout.groups, 'victim'), 'canary'],
    [join(layout.groups, 'main'), 'canary'],
    [join(home, 'person'), 'canary'],
  ].map(([place = '', name = '']) => plantCanary(join(place, name), 0, options.secret))

  const known: Known = {
    marker,
    own: evil,
    others: [mainGroup, witness, victim],
    taskIds,
    requestIds: ['todo-1', 'memory-1', 'question-1', 'w1', 'w100'],
    runIds: [],
    pids: [installation.daemon()?.pid ?? 1, process.pid],
    port: decoy.port,
    paths: [
      ...canaries.map(({ path }) => join(path, 'secret.txt')),
      ...[
        layout.database,
        layout.state,
        join(layout.ipc, 'victim'),
        join(layout.groups, 'victim'),
        layout.spool,
        // Not its parent: inside, that is a place of its own, which may have a file of that name.
        join(home, 'person'),
      ],
    ],
  }
  const program = join(home, 'program')
  cpSync(join(import.meta.dirname, 'inside'), join(program, 'hostile', 'inside'), { recursive: true })
  cpSync(join(import.meta.dirname, '..', 'random.ts'), join(program, 'random.ts'))
  writeFileSync(join(program, 'package.json'), '{"type":"module"}')
  writeFileSync(join(program, 'known.json'), JSON.stringify(known))
  const samples = makeSamples(known, options.seed, options.samples)
  writeFileSync(join(program, 'samples.jsonl'), samples.map(sample => JSON.stringify(sample)).join('\n'))
  chmodSync(program, 0o755)
  if (process.getuid?.() === 0) chownSync(program, 0, 0)
  return {
    installation,
    layout,
    before,
    installationId,
    canaries,
    known,
    samples,
    provider: upstream,
    decoy,
  }
}

/** Something on the host's own network that nobody has any business with. */
async function serveDecoy(atEnd: (close: () => Promise<void>) => void) {
  const seen = { visits: 0 }
  const server = listen(socket => {
    seen.visits++
    socket.destroy()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  atEnd(async () => void server.close())
  return { port: (server.address() as AddressInfo).port, seen }
}

/** The model's provider: says what came, with which key, and nothing else. */
async function serveProvider(atEnd: (close: () => Promise<void>) => void) {
  const seen = { requests: 0, outside: new Set<string>(), otherKeys: new Set<string>() }
  const server = createServer((request, response) => {
    seen.requests++
    const path = request.url ?? ''
    if (!path.startsWith('/v1/') || /\.\.|%2e/i.test(path)) seen.outside.add(path.slice(0, 100))
    const key = request.headers['x-api-key']
    if (key !== modelKey) seen.otherKeys.add(String(key).slice(0, 20))
    request.resume()
    response.setHeader('content-type', 'application/json').end('{}')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  atEnd(async () => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, seen }
}
