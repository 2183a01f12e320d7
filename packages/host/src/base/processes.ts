import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { platform } from './platform.ts'

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

export interface Marked {
  pid: number
  runId: string
}

/** The processes of an installation's runs in one kind of sandbox, or of one run of it. */
export function markedProcesses(sandbox: string, installation: string, runId?: string): Marked[] {
  const plain = markOf(sandbox, installation, '')
  const key = keyOf(installation)
  const found: Marked[] = []
  for (const { pid, value: mark } of platform.withVariable(markVariable)) {
    if (pid === process.pid) continue
    const says = mark.startsWith(plain) ? mark.replace(`/${installation}`, '') : unseal(mark, key)
    if (!says?.startsWith(`${sandbox}/`)) continue
    const entry = { pid, runId: says.slice(sandbox.length + 1) }
    if (runId === undefined || entry.runId === runId) found.push(entry)
  }
  return found
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
