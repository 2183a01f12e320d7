import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { startChild, startCommand } from './children.ts'
import { folderOf } from './messages.ts'
import { asBigint, asFields, asNumber, asText } from './shape.ts'
import { asStamps, type Stamps } from './stamps.ts'

export type Durability = 'process' | 'full'

export const sandboxNames = ['process', 'bubblewrap', 'podman', 'docker'] as const
export type SandboxName = (typeof sandboxNames)[number]

export interface AgentSettings {
  sandbox: SandboxName
  /** 0: a session ends with its answer, and every message begins a new one */
  idleMs: number
  /** left out: as usual */
  atOnce?: number
  /** where the model of the driver `assistant` is served; left out: the concierge, which needs none */
  model?: string
}

export interface HatchwayOptions {
  /** the data directory */
  data: string
  durability: Durability
  /** how many groups there are: g0000, g0001, … */
  groups: number
  dialect: 'hatchway' | 'nanoclaw'
  quotas: 'default' | 'unlimited'
  /** names: each committed file is remembered; count: only how many, so that memory can be measured */
  record: 'names' | 'count'
  /** left out: only the hatch is measured, and nobody answers people; otherwise the first group is the main one */
  agents?: AgentSettings
  /** the groups' chats are on Telegram, and whatever is said in them is written down as it is stored, by its text */
  telegram?: boolean
  /** whether there is a service that gives back what it gets */
  services?: boolean
  /** where the names of committed files are written down, for when the daemon is killed */
  ledger?: string
}

const oneOf = <T extends string>(value: unknown, choices: readonly T[]): T => {
  const found = choices.find(choice => choice === value)
  if (found === undefined) throw new TypeError(`expected one of ${choices.join(', ')}`)
  return found
}

export const asSandboxName = (value: unknown): SandboxName => oneOf(value, sandboxNames)

const asAgentSettings = (value: unknown): AgentSettings => {
  const { sandbox, idleMs, atOnce, model } = asFields(value)
  return {
    sandbox: asSandboxName(sandbox),
    idleMs: asNumber(idleMs),
    ...(atOnce === undefined ? {} : { atOnce: asNumber(atOnce) }),
    ...(model === undefined ? {} : { model: asText(model) }),
  }
}

export const asHatchwayOptions = (value: unknown): HatchwayOptions => {
  const fields = asFields(value)
  return {
    data: asText(fields.data),
    durability: oneOf(fields.durability, ['process', 'full']),
    groups: asNumber(fields.groups),
    dialect: oneOf(fields.dialect, ['hatchway', 'nanoclaw']),
    quotas: oneOf(fields.quotas, ['default', 'unlimited']),
    record: oneOf(fields.record, ['names', 'count']),
    ...(fields.telegram === true ? { telegram: true } : {}),
    ...(fields.services === true ? { services: true } : {}),
    ...(fields.ledger === undefined ? {} : { ledger: asText(fields.ledger) }),
    ...(fields.agents === undefined ? {} : { agents: asAgentSettings(fields.agents) }),
  }
}

export interface Hatchway {
  pid: number
  /** milliseconds from the start of the process until files are being handled and none is left from before */
  ready(seconds?: number): Promise<number>
  /** what has been committed since it was last asked */
  committed(): Promise<Stamps>
  /** how many files are committed, when the last of them was, and the seconds from the daemon's start to it */
  progress(): Promise<{ files: number; at: bigint; seconds: number }>
  waitFor(files: number, seconds: number): Promise<void>
  /** resolves when agents can be started, with the reason if they cannot */
  agentsReady(): Promise<string | undefined>
  /** agents' sessions that run now */
  sessions(): Promise<number>
  stop(): Promise<void>
  /** SIGKILL; resolves when it is gone */
  kill(): Promise<void>
}

const daemonFile = new URL('./daemon.process.ts', import.meta.url)
const stopSeconds = 60
/** as the command `hatchway` does it for the daemon */
const asStarted = {
  flags: ['--semi-space-growth-factor=1', '--heap-growing-percent=50'],
  env: { NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/hatchway', import.meta.url)) },
}

export const directoryOf = (data: string, group: number, sub: string) =>
  join(data, 'ipc', folderOf(group), sub)

export const directoriesOf = (data: string, groups: number, sub: string) =>
  Array.from({ length: groups }, (_, group) => directoryOf(data, group, sub))

/** In a process of its own, so that what registering leaves in memory is not counted as the daemon's. */
export const registerWithHatchway = async (options: HatchwayOptions): Promise<void> => {
  const child = startChild(daemonFile, 'registration')
  try {
    await child.call('register', options, 300)
  } finally {
    await child.end()
  }
}

/** Begins the daemon on a data directory whose groups are registered; files may be waiting there already. */
export const startHatchway = async (options: HatchwayOptions): Promise<Hatchway> => {
  const begin = performance.now()
  const child = startChild(daemonFile, `Hatchway (${options.durability})`, asStarted)
  await child.call('start', options)
  return {
    pid: child.pid,
    async ready(seconds = 60) {
      await child.call('ready', undefined, seconds)
      return performance.now() - begin
    },
    committed: async () => asStamps(await child.call('take')),
    async progress() {
      const { files, at, seconds } = asFields(await child.call('progress', undefined, 300))
      return { files: asNumber(files), at: asBigint(at), seconds: asNumber(seconds) }
    },
    async waitFor(files, seconds) {
      await child.call('waitFor', files, seconds)
    },
    async agentsReady() {
      const reason = await child.call('agentsReady')
      return reason === undefined ? undefined : asText(reason)
    },
    sessions: async () => asNumber(await child.call('sessions')),
    async stop() {
      await child.call('stop', undefined, stopSeconds)
      await child.end()
    },
    kill: child.kill,
  }
}

/** The daemon alone, as people run it: what the benchmark would add to it must not be counted. */
export const startUp = (data: string) =>
  startCommand(
    new URL('../../packages/cli/bin/hatchway.mjs', import.meta.url),
    ['up', '--data', data],
    /ready/,
  )

/** How often the journal says that each file was handled. */
export const journalled = (data: string): Map<string, number> => {
  const journal = new DatabaseSync(join(data, 'state', 'hatchway.db'), { readOnly: true })
  try {
    const rows = journal.prepare('SELECT file, count(*) AS times FROM commands GROUP BY file').all()
    return new Map(rows.map(({ file, times }) => [asText(file), asNumber(times)]))
  } finally {
    journal.close()
  }
}

/** A refusal is committed as well, and faster than the real thing: a figure with refusals in it is worth nothing. */
export const refuseRefusals = (data: string) => {
  const errors = join(data, 'ipc', 'errors')
  const records = readdirSync(errors).filter(name => name.endsWith('.error.json'))
  const first = records[0]
  if (first === undefined) return
  throw new Error(
    `${records.length} files were refused, one with ${readFileSync(join(errors, first), 'utf8')}`,
  )
}
