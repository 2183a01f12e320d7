import { readdirSync, readFileSync, unlinkSync, watch } from 'node:fs'
import { join } from 'node:path'
import { errorCode } from '@hatchway/spool'

export interface Receipt {
  ok: boolean
  code?: string | undefined
  result?: unknown
}

interface Asked {
  at: number
  directory: string
  /** false: answers to this one are not for the figures, as people or services take their time */
  isTimed: boolean
  done(receipt: Receipt): void
}

/** An agent's side of requests: what was asked, what was answered, and how long that took. */
export interface Receipts {
  watch(directory: string): void
  expect(directory: string, id: string, isTimed: boolean, done: (receipt: Receipt) => void): void
  open(): number
  /** of those answered since the last call, in milliseconds */
  latencies(): number[]
  /** also for events that did not come */
  lookEverywhere(): void
  oldestMs(): number
}

export function createReceipts(complain: (about: string) => void): Receipts {
  const waiting = new Map<string, Asked>()
  const directories = new Set<string>()
  let latencies: number[] = []

  const look = (directory: string) => {
    for (const file of namesIn(directory)) {
      if (!file.endsWith('.json') || file.endsWith('.progress.json')) continue
      const id = file.slice(0, -'.json'.length)
      const text = take(join(directory, file))
      if (text === undefined) continue
      const asked = waiting.get(id)
      if (asked === undefined) {
        complain(`an answer that nobody waits for: ${id} in ${directory}`)
        continue
      }
      waiting.delete(id)
      if (asked.isTimed) latencies.push(performance.now() - asked.at)
      asked.done(read(text))
    }
  }

  return {
    watch(directory) {
      if (directories.has(directory)) return
      directories.add(directory)
      watch(directory, () => look(directory)).on('error', () => directories.delete(directory))
    },
    expect(directory, id, isTimed, done) {
      waiting.set(id, { at: performance.now(), directory, isTimed, done })
    },
    open: () => waiting.size,
    latencies() {
      const taken = latencies
      latencies = []
      return taken
    },
    lookEverywhere() {
      for (const directory of new Set([...waiting.values()].map(asked => asked.directory))) look(directory)
    },
    oldestMs: () => Math.max(0, ...[...waiting.values()].map(({ at }) => performance.now() - at)),
  }
}

/** A group that was unregistered may have lost its directory. */
function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    throw error
  }
}

/** undefined: somebody has taken it meanwhile */
function take(path: string): string | undefined {
  try {
    const text = readFileSync(path, 'utf8')
    unlinkSync(path)
    return text
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Version 1 says `ok`; Pynchy's answers have a result, a decision or an error. */
function read(text: string): Receipt {
  const answer: unknown = JSON.parse(text)
  if (typeof answer !== 'object' || answer === null) return { ok: false, code: 'no object' }
  if ('ok' in answer) {
    const error = 'error' in answer ? answer.error : undefined
    const code =
      typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : undefined
    return { ok: answer.ok === true, code, result: 'result' in answer ? answer.result : undefined }
  }
  if ('result' in answer) return { ok: true, result: answer.result }
  if ('decision' in answer) return { ok: true, result: answer.decision }
  return { ok: false, code: 'error' in answer ? String(answer.error) : 'unknown' }
}
