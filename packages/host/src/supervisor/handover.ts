import { createHash, randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, unlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The one file through which daemon and supervisor speak, each of them possibly of another revision than the other, and
 * either of them possibly killed since. Its fields keep their meaning for ever.
 *
 *   building ──▶ restarting ──▶ up                      the daemon that came up says so
 *      └────┬─────────┘
 *           ├──▶ failed ──▶ up                          there was nothing to go back to
 *           └──▶ rolling_back ──▶ rolled_back ──▶ up
 *
 * A daemon that ends while it builds has handed over nothing, and yet what is started next is the new revision, as that
 * is checked out: it is watched in the same way, and says so when it is up.
 *
 * `up` with `from` = `to`: that revision has come up, and nothing is under way. If another one is checked out when the
 * daemon is started next, nobody has handed it over and nobody has seen it come up. The supervisor writes `building`, so
 * that it is watched.
 */
export interface Handover {
  /** of the deploy, in the daemon's store */
  id: number
  from: string
  to: string
  /** the checkout that both revisions are of */
  directory: string
  /** makes the checkout ready to run */
  build: readonly string[]
  commandMs: number
  /** how long the new one may take to come up */
  healthMs: number
  status: HandoverStatus
  /** why the new revision does not run */
  reason: string | null
}

const statuses = ['building', 'restarting', 'up', 'rolling_back', 'rolled_back', 'failed'] as const
type HandoverStatus = (typeof statuses)[number]

export const handoverFile = (dataDirectory: string): string => join(dataDirectory, 'state', 'deploy.json')

/** Marks the processes that belong to this installation. */
export const installationOf = (path: string): string =>
  createHash('sha256').update(path).digest('hex').slice(0, 16)

export function readHandover(path: string): Handover | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
  try {
    return handoverFrom(JSON.parse(text))
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Whole or not at all, and on the disk before anybody acts on it. */
export function writeHandover(path: string, handover: Handover): void {
  const temporary = `${path}.${randomBytes(6).toString('hex')}`
  const file = openSync(temporary, 'wx', 0o600)
  try {
    writeSync(file, `${JSON.stringify(handover, null, 2)}\n`)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  try {
    renameSync(temporary, path)
  } catch (error) {
    unlinkSync(temporary)
    throw error
  }
}

/** By hand: the supervisor is made of nothing but what Node itself brings. */
function handoverFrom(value: unknown): Handover | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { id, from, to, directory, build, commandMs, healthMs, status, reason }: Record<string, unknown> = {
    ...value,
  }
  const known = statuses.find(name => name === status)
  if (known === undefined || !Array.isArray(build) || !build.every(isText)) return undefined
  if (!isText(from) || !isText(to) || !isText(directory)) return undefined
  if (!isNumber(id) || !isNumber(commandMs) || !isNumber(healthMs)) return undefined
  return {
    id,
    from,
    to,
    directory,
    build,
    commandMs,
    healthMs,
    status: known,
    reason: isText(reason) ? reason : null,
  }
}

const isText = (value: unknown): value is string => typeof value === 'string'
const isNumber = (value: unknown): value is number => Number.isSafeInteger(value)
