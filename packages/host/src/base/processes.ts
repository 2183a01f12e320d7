import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'

/**
 * Which processes of this machine belong to which run. Each run carries a mark in its environment, so what we end is
 * known by itself and never by a number from a file that may belong to somebody else by now.
 */
export const markVariable = 'HATCHWAY_RUN'

export const markOf = (kind: string, installation: string, runId: string): string =>
  `${kind}/${installation}/${runId}`

const cipher = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16
const keyOf = (installation: string) => createHash('sha256').update(installation).digest()

/** For runs in a sandbox, which can read it in their environment: only their installation sees what it says. */
export function sealedMarkOf(sandbox: string, installation: string, runId: string): string {
  const nonce = randomBytes(nonceBytes)
  const sealing = createCipheriv(cipher, keyOf(installation), nonce)
  const sealed = Buffer.concat([sealing.update(`${sandbox}/${runId}`), sealing.final()])
  return Buffer.concat([nonce, sealing.getAuthTag(), sealed]).toString('base64url')
}

/** undefined: it was made by another installation, or by nobody */
function unseal(mark: string, key: Buffer): string | undefined {
  const bytes = Buffer.from(mark, 'base64url')
  if (bytes.length <= nonceBytes + tagBytes) return undefined
  const opening = createDecipheriv(cipher, key, bytes.subarray(0, nonceBytes))
  opening.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
  try {
    return opening.update(bytes.subarray(nonceBytes + tagBytes), undefined, 'utf8') + opening.final('utf8')
  } catch (error) {
    if (error instanceof Error) return undefined
    throw error
  }
}

export interface ProcessEntry {
  pid: number
  parent: number
  group: number
  /** by the kernel's own count: with the number it tells a process from every other */
  startTime: string
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1')
  } catch (error) {
    // It is over, or somebody else's.
    if (error instanceof Error && 'code' in error) return undefined
    throw error
  }
}

function numbers(): number[] {
  try {
    return readdirSync('/proc').map(Number).filter(Number.isInteger)
  } catch (error) {
    // A system without /proc.
    if (error instanceof Error && 'code' in error) return []
    throw error
  }
}

/** undefined: it does not run; what is dead and only not yet buried does not. */
export function runningProcess(pid: number): ProcessEntry | undefined {
  const stat = readProc(`/proc/${pid}/stat`)
  if (stat === undefined) return undefined
  // The name in brackets may hold spaces and brackets itself.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state, parent, group] = fields
  if (state === 'Z' || state === 'X') return undefined
  return { pid, parent: Number(parent), group: Number(group), startTime: fields[19] ?? '' }
}

/** Everything that runs. */
export const runningProcesses = (): ProcessEntry[] => numbers().flatMap(pid => runningProcess(pid) ?? [])

export interface Marked {
  pid: number
  runId: string
}

/** The processes of an installation's runs in one kind of sandbox, or of one run of it. */
export function markedProcesses(sandbox: string, installation: string, runId?: string): Marked[] {
  const start = `${markVariable}=`
  const plain = markOf(sandbox, installation, '')
  const key = keyOf(installation)
  const found: Marked[] = []
  for (const pid of numbers()) {
    if (pid === process.pid) continue
    const mark = readProc(`/proc/${pid}/environ`)
      ?.split('\0')
      .find(entry => entry.startsWith(start))
      ?.slice(start.length)
    if (mark === undefined) continue
    const says = mark.startsWith(plain) ? mark.replace(`/${installation}`, '') : unseal(mark, key)
    if (!says?.startsWith(`${sandbox}/`)) continue
    const entry = { pid, runId: says.slice(sandbox.length + 1) }
    if (runId === undefined || entry.runId === runId) found.push(entry)
  }
  return found
}

/** Threads of a user on the whole machine, which is what the kernel's limit for a user counts. */
export function threadsOf(uid: number): number {
  let count = 0
  for (const pid of numbers()) {
    const status = readProc(`/proc/${pid}/status`) ?? ''
    if (Number(/^Uid:\t(\d+)/m.exec(status)?.[1]) !== uid) continue
    count += Number(/^Threads:\t(\d+)/m.exec(status)?.[1] ?? 1)
  }
  return count
}

/** Bytes of memory that a process holds for itself. */
export function ownMemory(pid: number): number {
  const [, resident = 0, shared = 0] = (readProc(`/proc/${pid}/statm`) ?? '').split(' ').map(Number)
  return Math.max(0, resident - shared) * 4096
}

/** Sends a signal to a process, or with a negative number to a process group, that may be over already. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ESRCH' || error.code === 'EPERM'))
      return
    throw error
  }
}
