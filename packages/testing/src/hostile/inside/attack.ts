import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../random.ts'
import type { Ledger } from './ledger.ts'

/** Where a sandbox has what it has. */
export const places = {
  ipc: '/workspace/ipc',
  group: '/workspace/group',
  home: '/home/agent',
  global: '/workspace/global',
  program: '/workspace/extra/evil',
  model: '/run/hatchway',
  temporary: '/tmp',
  memory: '/dev/shm',
} as const

export const drops = ['tasks', 'messages', 'groups'] as const

/** A file that was thought up outside, with what has to be decided about it. */
export interface Sample {
  kind: 'decision' | 'fuzz' | 'document' | 'text'
  what: string
  drop: string
  /** base64; `idHere` in it stands for a fresh request id */
  body: string
  codes: readonly string[] | null
  /** base64; left out: a fresh one */
  name?: string
}
export const idHere = 'IDHEREIDHEREIDHEREIDHERE'

/** What the attackers know of others: all of it could be guessed. */
export interface Known {
  marker: string
  own: { folder: string; jid: string }
  others: readonly { folder: string; jid: string }[]
  taskIds: readonly string[]
  requestIds: readonly string[]
  runIds: readonly string[]
  pids: readonly number[]
  /** on which something of the host listens */
  port: number
  paths: readonly string[]
}

export interface Attack {
  random: Random
  ledger: Ledger
  known: Known
  /** its time is over */
  isOver(): boolean
  /** as a well-behaved writer; the name */
  post(drop: string, body: string | Uint8Array, more?: Expected): string
  /** waits until the host has taken most of what lies there */
  breathe(): Promise<void>
  freshName(): string
  freshId(): string
  samples(kind: Sample['kind']): Sample[]
}

interface Expected {
  codes?: readonly string[] | null | undefined
  name?: string | Buffer
  what?: string
}

export const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : String(error)

/** Whether it worked; why not does not matter. */
export function succeeds(work: () => unknown): boolean {
  try {
    work()
    return true
  } catch (error) {
    if (error instanceof Error) return false
    throw error
  }
}

const isPosted = (name: string) => name.endsWith('.json') && !name.startsWith('.')
const mostWaiting = 400

export function createAttack(options: {
  random: Random
  ledger: Ledger
  name: string
  turn: number
  deadline: number
}): Attack {
  const { random, ledger, name, turn, deadline } = options
  const known: Known = JSON.parse(readFileSync(join(places.program, 'known.json'), 'utf8'))
  let counter = 0
  const freshName = () => `${Date.now()}-${String(counter++).padStart(6, '0')}-${name}${turn}.json`
  const freshId = () => `${name}-${turn}-${counter++}-${random.below(1e9)}`
  const half = `.half-${randomBytes(6).toString('hex')}`
  return {
    random,
    ledger,
    known,
    isOver: () => Date.now() > deadline,
    freshName,
    freshId,
    post(drop, body, { codes, name = freshName(), what } = {}) {
      const directory = join(places.ipc, drop)
      writeFileSync(join(directory, half), body)
      ledger.write({
        kind: 'posted',
        drop,
        file: typeof name === 'string' ? name : name.toString('latin1'),
        ...(codes ? { codes } : {}),
        ...(what === undefined ? {} : { what }),
      })
      renameSync(join(directory, half), Buffer.concat([Buffer.from(`${directory}/`), Buffer.from(name)]))
      return name.toString()
    },
    async breathe() {
      const waiting = () =>
        drops.reduce(
          (sum, drop) => sum + readdirSync(join(places.ipc, drop), 'latin1').filter(isPosted).length,
          0,
        )
      while (waiting() > mostWaiting && Date.now() < deadline) await sleep(5)
    },
    samples: kind =>
      readFileSync(join(places.program, 'samples.jsonl'), 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line): Sample => JSON.parse(line))
        .filter(sample => sample.kind === kind),
  }
}
