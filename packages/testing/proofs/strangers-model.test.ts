import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask, findProgram } from '../../host/src/base/programs.ts'
import { bundlePath } from '../../host/src/runs/launch.ts'
import { type MessagesApi, type ModelRequest, serveMessagesApi } from '../src/agents/messages-api.ts'
import { openInstallation } from '../src/daemon/installation.ts'
import { temporaryFolder } from '../src/folders.ts'
import { startDockerEngine } from '../src/sandboxes/engines.ts'
import { until } from '../src/until.ts'

/**
 * Programs that other projects' containers are made of, as npm has them, in sandboxes without a network. None of them
 * knows our socket: they reach the model, which the test plays behind the host's gateway, on loopback alone.
 */
const strangers = join(import.meta.dirname, '..', 'src', 'strangers')
const key = 'sk-the-hosts-own-key'
const places = ['docker', 'podman', 'bubblewrap'] as const
const programs = { sdk92: 'Agent SDK 0.2.92', sdk29: 'Agent SDK 0.2.29', code: 'Claude Code 1.0.128' }
type Program = keyof typeof programs

const needed = ['bwrap', 'podman', 'runc', 'dockerd', 'docker', 'busybox']
const missing = [
  ...(process.getuid?.() === 0 ? [] : ['root']),
  ...needed.filter(name => findProgram(name) === undefined),
  ...(existsSync(join(strangers, 'node_modules')) ? [] : ['npm test, which installs the programs']),
]

/** A container with neither Node nor socat: it asks the model, posts a file, and says what it heard. */
const staticProgram = `#!/bin/busybox sh
bb=/bin/busybox
heard=$($bb wget -q -O - --header 'content-type: application/json' --post-data '{"model":"m","system":"","messages":[]}' "$ANTHROPIC_BASE_URL/v1/messages" | $bb grep -o '"text":"ok"')
printf '{"type":"message","chatJid":"%s","text":"posted by a static program"}' "$NANOCLAW_CHAT_JID" > /workspace/ipc/messages/.one
$bb mv /workspace/ipc/messages/.one /workspace/ipc/messages/one.json
printf -- '---NANOCLAW_OUTPUT_START---\\n{"status":"success","result":"%s; %s"}\\n---NANOCLAW_OUTPUT_END---\\n' "$(echo "$heard" | $bb tr -d '"')" "$($bb grep -c : /proc/net/dev) network interface"
`

const lastText = ({ messages }: ModelRequest): string =>
  JSON.stringify(messages.findLast(({ role }) => role === 'user'))
const groupIn = (request: ModelRequest) => /please, (\w+-\w+)/.exec(JSON.stringify(request.messages))?.[1]

const isTried = missing.length === 0 || process.env.CI === 'true'
const attempt = isTried ? describe : describe.skip
attempt(`programs of other projects${missing.length > 0 ? ` (needs ${missing.join(', ')})` : ''}`, () => {
  // Where they are passed over, nobody would remove it.
  const folder = isTried ? temporaryFolder('strangers') : ''
  const closers: (() => Promise<unknown> | undefined)[] = [
    async () => rmSync(folder, { recursive: true, force: true }),
  ]
  afterAll(async () => {
    for (const close of closers.toReversed()) await close()
  })
  let api: MessagesApi
  let installation: Awaited<ReturnType<typeof openInstallation>>
  let engines: NodeJS.ProcessEnv

  const engine = async (name: string, ...args: string[]) => {
    const answer = await ask(name, [...(name === 'podman' ? ['--cgroup-manager=cgroupfs'] : []), ...args], {
      timeoutMs: 60_000,
      environment: engines,
    })
    expect(answer, `${name} ${args.join(' ')}`).toMatchObject({ code: 0 })
    return answer.stdout
  }

  beforeAll(async () => {
    const docker = await startDockerEngine()
    closers.push(() => docker?.stop())
    writeFileSync(join(folder, 'containers.conf'), '[engine]\nruntime="runc"\n')
    writeFileSync(
      join(folder, 'storage.conf'),
      `[storage]\ndriver="overlay"\ngraphroot="${folder}/root"\nrunroot="${folder}/run"\n`,
    )
    const environment = {
      DOCKER_HOST: docker?.options.environment?.DOCKER_HOST ?? '',
      CONTAINERS_CONF: join(folder, 'containers.conf'),
      CONTAINERS_STORAGE_CONF: join(folder, 'storage.conf'),
    }
    engines = { ...process.env, ...environment }
    closers.push(() =>
      ask('podman', ['--cgroup-manager=cgroupfs', 'rm', '--all', '--force'], {
        timeoutMs: 20_000,
        environment: engines,
      }),
    )
    await makeImages()

    api = await serveMessagesApi(request => {
      const group = groupIn(request) ?? 'nobody'
      if (lastText(request).includes('tool_result')) return { text: `All done, says ${group}.` }
      return { calls: [{ name: 'mcp__hatchway__send_message', input: { text: `On it, says ${group}.` } }] }
    })
    closers.push(() => api.close())

    writeFileSync(join(folder, 'allowed'), `${strangers}\n${dirname(bundlePath)}\n`, { mode: 0o644 })
    const mounts = [
      { from: strangers, to: 'strangers' },
      { from: dirname(bundlePath), to: 'agent' },
    ]
    const command = ['/opt/hatchway/node', '/workspace/extra/strangers/stranger.mjs']
    const groups = places.flatMap(sandbox => [
      ...(Object.keys(programs) as Program[]).map(program => [
        `${sandbox}-${program}`,
        sandbox === 'bubblewrap'
          ? { sandbox, mounts, driver: 'command', command: [...command, program] }
          : { sandbox, mounts, image: 'localhost/stranger:latest' },
      ]),
      ...(sandbox === 'bubblewrap'
        ? []
        : [[`${sandbox}-static`, { sandbox, image: 'localhost/static:latest' }]]),
    ])
    installation = await openInstallation({
      sandbox: 'bubblewrap',
      atEnd: close => closers.push(close),
      environment: home => {
        const file = join(home, 'hatchway.config.mjs')
        const config = {
          mountsAllowed: join(folder, 'allowed'),
          agents: { memoryMb: 1024, idleMs: 1000 },
          groups: Object.fromEntries(groups),
        }
        writeFileSync(file, `export default ${JSON.stringify(config)}`)
        return {
          ...environment,
          HATCHWAY_CONFIG: file,
          HATCHWAY_MODEL_URL: api.url,
          ANTHROPIC_API_KEY: key,
        }
      },
    })
  }, 180_000)

  /** Made of what this machine has: Node with its libraries, and a shell in one static file. */
  async function makeImages() {
    const node = join(folder, 'node-image')
    const needs = [process.execPath, '/bin/sh'].flatMap(program =>
      [...execFileSync('ldd', [program], { encoding: 'utf8' }).matchAll(/(\/\S+) \(0x/g)].flatMap(
        ([, path = '']) => path,
      ),
    )
    for (const [from, to] of [
      [process.execPath, '/usr/local/bin/node'],
      ['/bin/sh', '/bin/sh'],
      ...[...new Set(needs)].map(path => [path, path]),
    ] as const) {
      mkdirSync(dirname(join(node, to)), { recursive: true })
      copyFileSync(from, join(node, to))
    }
    const bare = join(folder, 'static-image')
    mkdirSync(join(bare, 'bin'), { recursive: true })
    copyFileSync(findProgram('busybox') ?? '', join(bare, 'bin', 'busybox'))
    writeFileSync(join(bare, 'program'), staticProgram, { mode: 0o755 })
    const images = [
      [node, 'stranger', ['/usr/local/bin/node', '/workspace/extra/strangers/stranger.mjs']],
      [bare, 'static', ['/program']],
    ] as const
    for (const [root, name, entry] of images) {
      const archive = join(folder, `${name}.tar`)
      execFileSync('tar', ['--create', '--file', archive, '--owner=0', '--group=0', '-C', root, '.'])
      for (const program of ['docker', 'podman'])
        await engine(
          program,
          'import',
          '--change',
          `ENTRYPOINT ${JSON.stringify(entry)}`,
          archive,
          `localhost/${name}:latest`,
        )
    }
  }

  const say = async (group: string) => {
    const dialect = group.startsWith('bubblewrap') ? 'hatchway' : 'nanoclaw'
    await installation.addGroup({ folder: group, jid: `local:${group}`, name: group, dialect })
    const text = `@Hatch please, ${group}`
    return installation.hatchway('chat', '--group', group, '--once', text, '--wait', '--timeout', '150')
  }
  const isDone = (group: string) =>
    until(async () => (await installation.runs(group)).every(({ status }) => status === 'done'))

  for (const program of Object.keys(programs) as Program[]) {
    test.concurrent.for(places)(
      `${programs[program]} in %s calls the hatch’s tools and finishes its turn`,
      async place => {
        const group = `${place}-${program}`
        expect(await say(group)).toContain(`All done, says ${group}.`)
        await until(async () => (await installation.texts(group)).includes(`On it, says ${group}.`))
        await isDone(group)
        // What is recorded is what was used, and not the host's default.
        const image = place === 'bubblewrap' ? null : 'localhost/stranger:latest'
        const driver = place === 'bubblewrap' ? 'command' : 'image'
        expect(await installation.runs(group)).toMatchObject([{ sandbox: place, image, driver }])
        const asked = api.requests.filter(request => groupIn(request) === group)
        expect(asked.length).toBeGreaterThan(1)
        expect(asked.every(({ headers }) => headers['x-api-key'] === key)).toBe(true)
      },
    )
  }

  test.concurrent.for(['docker', 'podman'] as const)(
    'an image without Node in %s asks the model, has no other network, and posts a file',
    async place => {
      const group = `${place}-static`
      expect(await say(group)).toContain('text:ok; 1 network interface')
      await until(async () => (await installation.texts(group)).includes('posted by a static program'))
      await isDone(group)
    },
  )

  test('nothing of it is left', async () => {
    for (const name of ['docker', 'podman'])
      await expect.poll(() => engine(name, 'ps', '--all', '--quiet')).toBe('')
  })
})
