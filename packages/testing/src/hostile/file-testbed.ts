import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createNames } from '@hatchway/spool'
import { layoutOf } from '../../../host/src/base/layout.ts'
import { loadConfig, registerGroups } from '../../../host/src/index.ts'
import { openStore } from '../../../host/src/store/sqlite.ts'
import type { CommandRow, MessageRow } from '../../../host/src/store/types.ts'
import { type Launched, launch } from '../daemon/process.ts'
import type { Spoils } from './attacker.ts'
import { type Canary, filesWith, plantCanary } from './canary.ts'
import type { Phase, Testimony } from './witness.ts'

/** Who the host runs as, and who the hostile group's processes run as. */
export interface Users {
  host: number
  /** the container's own user, or the host's: then it may replace its directories, too */
  attacker: number
}

const self = process.getuid?.() ?? 0
export const isRoot = self === 0
const nobody = 65_534

export const asRoot: Users = { host: 0, attacker: 1000 }
export const asRootUnderOneUser: Users = { host: 0, attacker: 0 }
export const asOrdinaryUser: Users = isRoot
  ? { host: nobody, attacker: nobody }
  : { host: self, attacker: self }

const fromSources = { NODE_COMPILE_CACHE: process.env.TEST_COMPILE_CACHE ?? '' }

const groups = [
  { folder: 'main', jid: 'test:main', name: 'Main', main: true, dialect: 'hatchway' },
  { folder: 'evil', jid: 'test:evil', name: 'Evil', main: false, dialect: 'hatchway' },
  { folder: 'witness', jid: 'test:witness', name: 'Witness', main: false, dialect: 'hatchway' },
] as const

interface Entry {
  id: string
  original_file: string | null
  code: string
  error: string
  kept: boolean
  count: number
}

/** What became of a group's files, by the journal and errors/, once the daemon has ended. */
export interface Account {
  /** files whose command took effect */
  accepted: number
  /** files that were refused, by code, each with its reason in errors/ or in the summary's count */
  refused: Record<string, number>
  /** files that were thrown away unread, and counted */
  shed: number
  /** all of them */
  total: number
  rows: readonly CommandRow[]
  messages: readonly MessageRow[]
  entries: readonly Entry[]
}

export interface FileTestbed {
  data: string
  /** the hostile group's directory */
  evil: string
  canary: Canary
  /** planted in files that are refused: no reason, answer or line of the log may repeat it */
  marker: string
  /** does something as the hostile group's user */
  attack<T>(work: () => T): T
  /** posts a file as a well-behaved writer does, from the hostile group; returns its name */
  post(drop: string, body: string | Uint8Array, name?: string | Buffer): string
  postAs(group: string, drop: string, body: string): void
  name(): string
  /** runs one of the loops of attacker.ts to its end; how many files have to be accounted for */
  run(attack: string, count: number, target?: string): Promise<number>
  /** waits for something the daemon has to do, and fails if the daemon ends instead */
  until(what: string, condition: () => boolean): Promise<void>
  /** waits until all that was posted is handled, except for one that cannot be */
  handled(options?: { except?: string; patienceMs?: number }): Promise<void>
  answer(id: string, group?: string): Promise<{ ok: boolean; error?: { code: string; message: string } }>
  output(): string
  restart(): Promise<void>
  endPhase(name: string): void
  /** ends the daemon; throws if the witness was not served, or anything outside was touched */
  close(options?: {
    leaks?: boolean
  }): Promise<{ evil: Account; main: Account; phases: Phase[]; asked: number }>
  [Symbol.asyncDispose](): Promise<void>
}

export interface FileTestbedOptions {
  users: Users
  env?: Record<string, string>
}

export async function openFileTestbed({ users, env = {} }: FileTestbedOptions): Promise<FileTestbed> {
  const root = mkdtempSync(join(tmpdir(), 'hatchway-hostile-'))
  const data = join(root, 'data')
  const layout = layoutOf(data)
  const evil = join(layout.ipc, 'evil')
  const marker = `marker${randomBytes(8).toString('hex')}`
  mkdirSync(data)
  await registerGroups(await loadConfig({ data, overrides: { logLevel: 'error' } }), groups)
  if (isRoot) give(root, users)
  const canary = plantCanary(join(root, 'outside'), users.host, `secret${randomBytes(8).toString('hex')}`)
  const freshName = createNames()
  const children: ChildProcess[] = []
  let ended: string | undefined

  const startDaemon = () => {
    const ordinary = isRoot && users.host !== 0
    const started = launch(data, {
      env: {
        ...(ordinary && fromSources),
        HATCHWAY_DURABILITY: 'process',
        HATCHWAY_GRACE_MS: '300',
        HATCHWAY_SWEEP_MS: '1000',
        ...(users.host === 0 && users.attacker !== 0 && { HATCHWAY_CONTAINER_UID: String(users.attacker) }),
        ...env,
      },
      under: ordinary ? [process.execPath, join(import.meta.dirname, 'daemon.ts'), String(users.host)] : [],
    })
    void started.exited.then(({ code, signal }) => {
      if (daemon === started) ended = `the daemon has ended (${signal ?? code}):\n${started.output()}`
    })
    return started
  }
  let daemon: Launched | undefined
  daemon = startDaemon()
  await daemon.ready

  const witness = start('witness.ts', [String(users.attacker), join(layout.ipc, 'witness')], children)
  await new Promise(resolve => witness.once('message', resolve))

  const mustRun = () => {
    if (ended !== undefined) throw new Error(ended)
  }
  const until = async (what: string | (() => string), condition: () => boolean, patienceMs = 40_000) => {
    // Only so that a test that fails says what it waited for.
    const deadline = Date.now() + patienceMs
    while (!condition()) {
      mustRun()
      if (Date.now() > deadline) {
        const missed = typeof what === 'string' ? what : what()
        throw new Error(`waited in vain for ${missed}\n${daemon?.output()}`)
      }
      await sleep(20)
    }
  }
  const attack = <T>(work: () => T): T => {
    if (!isRoot || users.attacker === 0) return work()
    process.setegid?.(users.attacker)
    process.seteuid?.(users.attacker)
    try {
      return work()
    } finally {
      process.seteuid?.(0)
      process.setegid?.(0)
    }
  }
  const finish = async () => {
    const running = daemon
    daemon = undefined
    await running?.stop()
  }
  const left = () => [
    ...readdirSync(layout.spool).flatMap(bucket =>
      readdirSync(join(layout.spool, bucket)).map(file => join('spool', bucket, file)),
    ),
    ...['main', 'evil'].flatMap(group =>
      ['messages', 'tasks', 'groups'].flatMap(drop => waitingIn(join(layout.ipc, group, drop))),
    ),
  ]

  return {
    data,
    evil,
    canary,
    marker,
    attack,
    post(drop, body, name = freshName()) {
      attack(() => {
        const half = join(evil, 'input', `${freshName()}.half`)
        writeFileSync(half, body)
        renameSync(
          half,
          typeof name === 'string'
            ? join(evil, drop, name)
            : Buffer.concat([Buffer.from(`${evil}/${drop}/`), name]),
        )
      })
      return String(name)
    },
    postAs(group, drop, body) {
      const half = join(layout.ipc, group, 'input', `${freshName()}.half`)
      writeFileSync(half, body)
      if (isRoot) lchownSync(half, users.attacker, users.attacker)
      renameSync(half, join(layout.ipc, group, drop, freshName()))
    },
    name: freshName,
    async run(kind, count, target = '') {
      const child = start(
        'attacker.ts',
        [String(users.attacker), kind, evil, String(count), String(seed), target],
        children,
      )
      const spoils = await said<Spoils>(child)
      mustRun()
      return spoils.posted
    },
    until,
    handled: ({ except, patienceMs } = {}) => {
      const over = () => left().filter(path => path !== except)
      return until(
        () => `these to be handled: ${over().slice(0, 5).join(', ')}`,
        () => over().length === 0,
        patienceMs,
      )
    },
    async answer(id, group = 'evil') {
      const path = join(layout.ipc, group, 'responses', `${id}.json`)
      await until(`an answer to ${id}`, () => existsSync(path))
      return JSON.parse(readFileSync(path, 'utf8'))
    },
    output: () => daemon?.output() ?? '',
    async restart() {
      mustRun()
      await finish()
      daemon = startDaemon()
      await daemon.ready
    },
    endPhase: name => void witness.send(name),
    async close({ leaks = true } = {}) {
      mustRun()
      witness.send('end')
      const testimony = await Promise.race([said<Testimony>(witness), daemonEnd(daemon)])
      mustRun()
      const output = daemon?.output() ?? ''
      await finish()
      const problems = [...testimony.complaints]
      if (testimony.answered !== testimony.asked)
        problems.push(`the other group has ${testimony.answered} answers to ${testimony.asked}`)
      problems.push(...canary.changes().map(change => `outside: ${change}`))
      if (leaks) problems.push(...filesWith([canary.secret, 'root:x:0:0:'], data))
      if (output.includes(marker)) problems.push('the log repeats a refused file')
      problems.push(...repeated(layout.ipc, marker))
      if (problems.length > 0) throw new Error(`${problems.slice(0, 20).join('\n')}\n${output}`)
      const store = openStore({ path: layout.database, durability: 'process' })
      try {
        const accountOf = (group: string) =>
          account(
            layout.errors,
            group,
            store.commands({ group, limit: 1_000_000 }),
            store.messages({ group }),
          )
        return {
          evil: accountOf('evil'),
          main: accountOf('main'),
          phases: testimony.phases,
          asked: testimony.asked,
        }
      } finally {
        store.close()
      }
    },
    async [Symbol.asyncDispose]() {
      for (const child of children) child.kill('SIGKILL')
      await daemon?.kill()
      unlock(root)
      rmSync(root, { recursive: true, force: true })
    },
  }
}

/** The same attacks in the same order each time; the moment at which they meet the host is chance enough. */
const seed = 20_260_101

const daemonEnd = async (daemon: Launched | undefined): Promise<never> => {
  await daemon?.exited
  await sleep(50)
  throw new Error(`the daemon has ended:\n${daemon?.output()}`)
}

function start(script: string, args: readonly string[], children: ChildProcess[]): ChildProcess {
  const child = fork(join(import.meta.dirname, script), args, {
    execArgv: [],
    env: { ...process.env, ...fromSources },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  children.push(child)
  return child
}

const said = <T>(child: ChildProcess) =>
  new Promise<T>((resolve, reject) => {
    child.once('message', (message: T) => {
      resolve(message)
      child.disconnect()
    })
    child.once('exit', code => reject(new Error(`${child.spawnargs.at(1)} ended with ${code}`)))
  })

/** The data directory belongs to whoever runs the host, and what a container writes to, to the container's user. */
function give(root: string, { host, attacker }: Users): void {
  chmodSync(root, 0o755)
  lchownSync(root, host, host)
  for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
    const path = join(root, name)
    const container = lstatSync(path).uid !== 0
    lchownSync(path, container ? attacker : host, container ? attacker : host)
  }
}

const isPosted = (name: string) => name.endsWith('.json') && !name.startsWith('.')

const waitingIn = (directory: string): string[] => {
  try {
    return readdirSync(directory)
      .filter(isPosted)
      .map(name => join(directory, name))
  } catch (error) {
    if (error instanceof Error && 'code' in error) return [`${directory}: ${error.code}`]
    throw error
  }
}

/** Answers and reasons that repeat what a refused file said. The file itself, kept in errors/, is another matter. */
function repeated(ipc: string, marker: string): string[] {
  const found: string[] = []
  for (const directory of ['errors', 'evil/responses', 'main/responses', 'evil', 'main']) {
    for (const name of readdirSync(join(ipc, directory))) {
      const path = join(ipc, directory, name)
      if (!name.endsWith('.json') || !lstatSync(path).isFile()) continue
      if (readFileSync(path, 'utf8').includes(marker)) found.push(`${path} repeats a refused file`)
    }
  }
  return found
}

export function account(
  errors: string,
  group: string,
  rows: readonly CommandRow[],
  messages: readonly MessageRow[],
): Account {
  const names = new Set(readdirSync(errors).filter(name => new RegExp(`^${group}-(e\\.|summary)`).test(name)))
  const problems: string[] = []
  const entries: Entry[] = []
  const reasons = new Map<string, number>()
  let summed = 0
  for (const name of names) {
    if (!name.endsWith('.error.json')) continue
    const entry: Entry = JSON.parse(readFileSync(join(errors, name), 'utf8'))
    entries.push(entry)
    if (entry.original_file === null) summed += entry.count
    else {
      reasons.set(entry.id, (reasons.get(entry.id) ?? 0) + 1)
      if (names.has(name.slice(0, -'.json'.length)) !== entry.kept) {
        problems.push(`${name} says that its file was ${entry.kept ? '' : 'not '}kept`)
      }
    }
  }
  for (const name of names) {
    if (name.endsWith('.error') && !names.has(`${name}.json`))
      problems.push(`${name} has no reason beside it`)
  }
  const refused: Record<string, number> = {}
  let unlisted = 0
  const examples: string[] = []
  const decided = new Map<string, number>()
  for (const row of rows) {
    decided.set(String(row.seq), (decided.get(String(row.seq)) ?? 0) + 1)
    if (row.outcome?.ok !== false) continue
    const { code } = row.outcome.error
    refused[code] = (refused[code] ?? 0) + 1
    const times = reasons.get(String(row.seq)) ?? 0
    if (times > 1) problems.push(`${row.file} has ${times} reasons`)
    if (times === 0) unlisted++
    if (times === 0 && examples.length < 5) examples.push(`${row.file} (${row.type}: ${code})`)
  }
  for (const [id] of reasons)
    if (!decided.has(id)) problems.push(`entry ${id} belongs to no file that was decided`)
  if (summed < unlisted)
    problems.push(
      `${unlisted} refused files are not in errors/, and its summary counts ${summed}: ${examples.join(', ')}`,
    )
  if (problems.length > 0) throw new Error(problems.slice(0, 20).join('\n'))
  const shed = summed - unlisted
  return {
    accepted: rows.filter(row => row.outcome?.ok).length,
    refused,
    shed,
    total: rows.length + shed,
    rows,
    messages,
    entries,
  }
}

/** Makes removable again what an attack has locked. */
function unlock(path: string): void {
  const about = lstatSync(path, { throwIfNoEntry: false })
  if (!about?.isDirectory()) return
  if (!isRoot) chmodSync(path, 0o700)
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.isDirectory()) unlock(join(path, entry.name))
  }
}
