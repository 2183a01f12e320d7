import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { z } from 'zod'
import { announcedSocket } from '../../../host/src/api/socket.ts'
import { registerGroups } from '../../../host/src/assemble/register.ts'
import { type Layout, layoutOf } from '../../../host/src/base/layout.ts'
import { overSocket } from '../../../host/src/client/over-socket.ts'
import type { Method } from '../../../host/src/client/transport.ts'
import type { NewGroup } from '../../../host/src/commands/groups.ts'
import { configFor } from '../daemon/in-process.ts'
import { type Launched, type LaunchOptions, launch } from '../daemon/process.ts'
import { agentCommand } from './agent.ts'
import type { Closing } from './closing.ts'

/** A whole installation that faults are made in: groups, agents, services, jobs and a schedule, in folders of its own. */
export interface Testbed {
  home: string
  data: string
  layout: Layout
  /** where the service leaves its lines, and where jobs leave theirs */
  effects: string
  work: string
  start(options?: LaunchOptions): Launched
  /** undefined: nobody is there, or it takes too long; what was asked may have happened */
  ask(method: Method, path: string, body?: unknown): Promise<{ status: number; text: string } | undefined>
  /** undefined also where it is refused */
  get<T>(path: string, schema: z.ZodType<T>): Promise<T | undefined>
}

/**
 * main    asks for tasks of clock, which nobody has to allow
 * office  is a main group with secrets: a person has to allow its tasks of clock and its commands on the host
 * ann     talks with the concierge
 * bob     talks with an agent that is a command, which sends messages of its own
 * clock   is where scheduled runs happen
 * desk    asks services, which nobody has to allow
 * vault   has secrets, so that a person has to allow what goes out
 *
 * Whatever is asked through files is asked in groups without sessions: a container that ends takes its answers with it.
 */
const folders = ['main', 'office', 'ann', 'bob', 'clock', 'desk', 'vault'] as const
export type Folder = (typeof folders)[number]

const groups = folders.map(
  (folder): NewGroup => ({
    folder,
    jid: `local:${folder}`,
    name: folder,
    main: folder === 'main' || folder === 'office',
    dialect: 'hatchway',
    requires_trigger: false,
  }),
)

export interface TestbedOptions {
  durability: 'full' | 'process'
  closing: Closing
  /** puts something in the place of the data directory, before anything is in it */
  prepare?: (data: string) => void
  /** further settings of the group bob, and of the daemon's environment */
  bob?: object
  env?: Record<string, string>
}

const answerMs = 20_000

export async function openTestbed(options: TestbedOptions): Promise<Testbed> {
  const home = mkdtempSync(join(tmpdir(), 'hatchway-torture-'))
  options.closing.add(() => rmSync(home, { recursive: true, force: true }))
  chmodSync(home, 0o755)
  const data = join(home, 'data')
  const work = join(home, 'work')
  const effects = join(home, 'effects')
  const layout = layoutOf(data)
  for (const path of [data, work]) mkdirSync(path)
  chmodSync(work, 0o777)
  writeFileSync(effects, '')
  options.prepare?.(data)
  const config = join(home, 'hatchway.config.mjs')
  const speaking = { driver: 'command', command: agentCommand }
  writeFileSync(
    config,
    `export default ${JSON.stringify({
      timezone: 'Europe/Berlin',
      web: { enabled: 'no' },
      limits: {
        openTasks: 100_000,
        openTaskBytes: 1_073_741_824,
        openRequests: 100_000,
        openRequestBytes: 1_073_741_824,
        openTodos: 1_000_000,
      },
      // Short, so that sessions come and go.
      agents: { sandbox: 'bubblewrap', atOnce: 3, idleMs: 300, closeMs: 5000, runMs: 120_000, memoryMb: 512 },
      guard: { approvalMs: 86_400_000 },
      services: { plugins: [join(import.meta.dirname, 'effects.service.ts')], unreadMs: 2_592_000_000 },
      hostJobs: {
        enabled: 'yes',
        directories: [work],
        users: process.getuid?.() === 0 ? ['nobody'] : [],
      },
      groups: {
        office: { containsSecrets: true },
        vault: { containsSecrets: true },
        bob: { ...speaking, ...options.bob },
        clock: speaking,
      },
    })}`,
  )
  await registerGroups(configFor(data, { durability: options.durability }), groups)
  writeFileSync(join(layout.groups, 'desk', 'picture.txt'), 'what goes along with messages\n'.repeat(1000))
  const env = {
    HATCHWAY_CONFIG: config,
    HATCHWAY_DURABILITY: options.durability,
    HATCHWAY_AGENTS_ENABLED: 'yes',
    TORTURE_EFFECTS: effects,
    ...options.env,
  }
  let daemon: Launched | undefined
  options.closing.add(async () => daemon?.kill())

  const ask: Testbed['ask'] = async (method, path, body) => {
    const patience = new AbortController()
    try {
      const late = new Promise<undefined>(resolve => {
        const timer = setTimeout(() => resolve(undefined), answerMs)
        patience.signal.addEventListener('abort', () => clearTimeout(timer))
      })
      return await Promise.race([overSocket(announcedSocket(data)).request(method, path, body), late])
    } catch (error) {
      // It was killed, or is not there yet: that is what this is about.
      if (error instanceof Error) return undefined
      throw error
    } finally {
      patience.abort()
    }
  }
  return {
    home,
    data,
    layout,
    effects,
    work,
    start(more = {}) {
      daemon = launch(data, { ...more, env: { ...env, ...more.env } })
      return daemon
    },
    ask,
    async get(path, schema) {
      const answer = await ask('GET', path)
      return answer?.status === 200 ? schema.parse(JSON.parse(answer.text)) : undefined
    },
  }
}
