import { closeSync, constants, fstatSync, openSync, readdirSync, readSync, unlinkSync, watch } from 'node:fs'
import { join } from 'node:path'
import { parseStrict, type RunInput, runInputSchema } from '@hatchway/protocol'
import { z } from 'zod'

/**
 * `input/` of a running session. A message is, in this order:
 *
 *   lying there → taken (handed to the driver, its file stays) → used (acknowledged, its file removed)
 *
 * What is taken and never used keeps its file, and is the next run's. `_close` ends the taking at once:
 * what lies beside it is the next run's too. `_stop` ends the current turn. A file that is no message is left alone, and told of once. Events only say
 * that there may be something; without them the directory is scanned more often.
 */
export interface Inbox {
  /** the agent has these: their files go */
  used(ids: readonly string[]): void
  close(): void
}

export interface InboxOptions {
  directory: string
  events: 'auto' | 'off'
  /** false: only `_close` and `_stop` are heeded, messages are for another run */
  takesMessages: boolean
  take(message: RunInput): void
  /** the host wants the run to finish */
  finish(): void
  /** a person wants the current turn to end */
  stopTurn(): void
  /** said again for a file that came back after its message was used */
  acknowledge(id: string): void
  notice(text: string): void
}

const sweepMs = 1000
const pollMs = 100
/** a writer that does not rename may need a moment */
const graceMs = 2000
const largestFile = 8 * 1024 * 1024

const followUpSchema = runInputSchema.omit({ id: true }).extend({
  version: z.literal(1),
  type: z.literal('message'),
})

export function openInbox(options: InboxOptions): Inbox {
  const { directory, take, notice } = options
  const taken = new Map<string, { state: 'taken' | 'used'; signature: string }>()
  const strange = new Map<string, { signature: string; since: number; told: boolean }>()
  let closed = false
  let unreadable = false

  const remove = (name: string) => {
    try {
      unlinkSync(join(directory, name))
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') notice(`input/${name} cannot be removed (${codeOf(error)}).`)
    }
  }
  const list = (): string[] => {
    try {
      const names = readdirSync(directory)
      unreadable = false
      return names
    } catch (error) {
      if (!unreadable) notice(`input/ cannot be listed (${codeOf(error)}); follow-ups do not arrive.`)
      unreadable = true
      return []
    }
  }

  const scan = () => {
    if (closed) return
    const names = list()
    if (names.includes('_stop')) {
      remove('_stop')
      options.stopTurn()
    }
    if (names.includes('_close')) {
      remove('_close')
      stop()
      options.finish()
      return
    }
    if (!options.takesMessages) return
    for (const name of names.filter(isMessageName).sort()) {
      consider(name)
      if (closed) return
    }
  }

  const consider = (name: string) => {
    const file = readMessage(join(directory, name), name)
    if (file === undefined) return
    const before = taken.get(name)
    if (before) {
      // The host posts a message again when it did not hear that it was used.
      if (before.state === 'used' && before.signature !== file.signature) {
        before.signature = file.signature
        options.acknowledge(idOf(name))
        remove(name)
      }
      return
    }
    if ('problem' in file) return puzzle(name, file)
    strange.delete(name)
    taken.set(name, { state: 'taken', signature: file.signature })
    take(file.message)
  }

  const puzzle = (name: string, { signature, problem }: { signature: string; problem: string }) => {
    const known = strange.get(name)
    if (known?.signature !== signature) {
      strange.set(name, { signature, since: Date.now(), told: false })
    } else if (!known.told && Date.now() - known.since >= graceMs) {
      known.told = true
      notice(`input/${name} is left alone: ${problem}.`)
    }
  }

  // Watch first, scan after: what comes in between is seen by one of the two.
  const watcher = options.events === 'auto' ? watchDirectory(directory, scan, notice) : undefined
  const timer = setInterval(scan, watcher ? sweepMs : pollMs)
  const stop = () => {
    closed = true
    clearInterval(timer)
    watcher?.close()
  }
  const first = setImmediate(scan)

  return {
    used(ids) {
      for (const id of ids) {
        const name = `${id}.json`
        const entry = taken.get(name)
        if (!entry || entry.state === 'used') continue
        entry.state = 'used'
        remove(name)
      }
    },
    close() {
      clearImmediate(first)
      stop()
    },
  }
}

function watchDirectory(directory: string, scan: () => void, notice: (text: string) => void) {
  try {
    const watcher = watch(directory, scan)
    watcher.on('error', error => notice(`input/ is no longer watched: ${error.message}.`))
    return watcher
  } catch (error) {
    notice(`input/ cannot be watched (${codeOf(error)}); it is listed at short intervals instead.`)
    return undefined
  }
}

const isMessageName = (name: string) => name.endsWith('.json') && !name.startsWith('.')
const idOf = (name: string) => name.slice(0, -'.json'.length)

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : String(error)

type Message = { signature: string } & ({ message: RunInput } | { problem: string })

/** Nothing but a regular file is read, without waiting and never more than a message may have. */
function readMessage(path: string, name: string): Message | undefined {
  let fd: number
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    return { signature: codeOf(error), problem: `it cannot be opened (${codeOf(error)})` }
  }
  try {
    const stat = fstatSync(fd, { bigint: true })
    const signature = `${stat.ino}-${stat.mtimeNs}-${stat.size}`
    if (!stat.isFile()) return { signature, problem: 'it is not a file' }
    if (stat.size > largestFile) return { signature, problem: 'it is too large' }
    const buffer = Buffer.alloc(Number(stat.size))
    let length = 0
    for (let read = -1; read !== 0 && length < buffer.length; length += read) {
      read = readSync(fd, buffer, length, buffer.length - length, length)
    }
    return { signature, ...parseMessage(buffer.toString('utf8', 0, length), idOf(name)) }
  } finally {
    closeSync(fd)
  }
}

function parseMessage(text: string, id: string): { message: RunInput } | { problem: string } {
  const parsed = parseStrict(text, { depth: 16 })
  if ('refusal' in parsed) return { problem: parsed.refusal.message }
  const followUp = followUpSchema.safeParse(parsed.body)
  const message = runInputSchema.safeParse({ ...followUp.data, id })
  return followUp.success && message.success
    ? { message: message.data }
    : { problem: 'it is not a message of version 1' }
}
