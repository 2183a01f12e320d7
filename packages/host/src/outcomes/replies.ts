import { lstatSync, readdirSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import {
  dialects,
  type Group,
  type Outcome,
  type Progress,
  type ReplyAddress,
  renderReply,
  replyAddressSchema,
} from '@hatchway/protocol'
import { openDirectory, post, reasonOf } from '@hatchway/spool'
import type { Logger } from 'pino'
import { type Layout, ownedDirectory } from '../base/layout.ts'
import type { Owners } from '../base/owners.ts'
import { backoff } from '../base/retry.ts'

/**
 * Answers (promise 5). A claimed file stays in the spool until its answer lies in the group's directory, so a crash
 * in between is mended by answering again. An answer that cannot be placed, because the disk is full or the group's
 * directory is in the way, is tried again with growing pauses, and given up, with a word to the operator, after a day.
 * So is one that finds too many of its group waiting already (promise 7). The journal has it either way: whoever posts
 * the request again gets it.
 */
type Step = Omit<Progress, 'version' | 'id'>

export interface Replies {
  /** `placed` is called once the answer is there, or was given up */
  send(group: string, address: ReplyAddress, outcome: Outcome, placed: () => void): void
  /** tells how far a request has come, where the group's containers understand that; nobody relies on it */
  progress(group: Pick<Group, 'folder' | 'dialect'>, address: ReplyAddress, step: Step): void
  endProgress(group: string, address: ReplyAddress): void
  /**
   * removes answers that nobody has taken, and gives up those that wait for their place; or removes only those that lie there since before `before`; many of them bit by bit,
   * and none that is placed meanwhile
   */
  clear(group: string, before?: number): void
  stop(): void
}

const giveUpMs = 86_400_000
const pauseAfter = backoff({ firstMs: 100, longestMs: 60_000 })
const waitingPerGroup = 1000
/** They are kept in memory, so their number alone is no limit. */
const waitingBytesPerGroup = 16_777_216
/** Others wait while so many are removed. */
const removedAtOnce = 100

/** What is left to remove of a group's answers, by directory. */
interface Clearing {
  group: string
  rest: { directory: string; names: string[] }[]
  /** placed since it began */
  fresh: Set<string>
  before: number | undefined
}

interface Waiting {
  group: string
  address: ReplyAddress
  outcome: Outcome
  bytes: number
  since: number
  timer: NodeJS.Timeout | undefined
  placed(): void
}

export function createReplies(options: { layout: Layout; owners: Owners; log: Logger }): Replies {
  const { layout, owners, log } = options
  const clearings = new Set<Clearing>()
  /** the answers of a group that wait for their place, and how many were given up since the first of them */
  const waiting = new Map<string, { answers: Set<Waiting>; bytes: number; dropped: number }>()

  const place = (group: string, address: ReplyAddress, outcome: Outcome) => {
    const file = renderReply(address, outcome)
    const [directory = '', name = ''] = file.path.split('/')
    const target = join(layout.ipc, group, directory)
    const owner = owners(group)
    const options = { name, staging: layout.staging, mode: 0o600, owner }
    try {
      post(target, file.content, options)
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
      ownedDirectory(target, owner)
      post(target, file.content, options)
    }
    for (const clearing of clearings) if (clearing.group === group) clearing.fresh.add(file.path)
  }

  /** whether that was all */
  const clearSome = ({ group, rest, fresh, before }: Clearing): boolean => {
    const next = rest.at(-1)
    if (!next) return true
    const some = next.names.splice(-removedAtOnce).filter(name => !fresh.has(`${next.directory}/${name}`))
    if (next.names.length === 0) rest.pop()
    try {
      removeFrom(join(layout.ipc, group, next.directory), some, before)
    } catch (error) {
      notCleared(group, error)
    }
    return rest.length === 0
  }

  /** They are only in the way of somebody who looks; the next sweep comes by here, too. */
  const notCleared = (group: string, error: unknown) =>
    log.warn({ err: error, group }, 'answers that nobody has taken could not be removed yet')
  const namesIn = (group: string, directory: string): string[] => {
    try {
      return answersIn(join(layout.ipc, group, directory))
    } catch (error) {
      notCleared(group, error)
      return []
    }
  }

  const goOnClearing = (clearing: Clearing) => {
    if (clearSome(clearing)) clearings.delete(clearing)
    else if (clearings.has(clearing)) setImmediate(goOnClearing, clearing)
  }

  /** of requests that have said how far they have come */
  const begun = new Set<string>()

  const retry = (answer: Waiting, failures = 1) => {
    const { group, address, outcome, since } = answer
    answer.timer = setTimeout(() => {
      const reason = failure(group, address, outcome)
      if (reason !== undefined && Date.now() - since <= giveUpMs) {
        return retry(answer, failures + 1)
      }
      if (reason !== undefined) {
        log.error(
          { group, id: address.id, reason },
          'an answer could not be placed for a day and was given up',
        )
      }
      release(answer)
    }, pauseAfter(failures))
  }

  const failure = (group: string, address: ReplyAddress, outcome: Outcome): string | undefined => {
    try {
      place(group, address, outcome)
      return undefined
    } catch (error) {
      return reasonOf(error)
    }
  }

  const release = (answer: Waiting) => {
    const state = waiting.get(answer.group)
    clearTimeout(answer.timer)
    if (state?.answers.delete(answer)) state.bytes -= answer.bytes
    if (state?.answers.size === 0) {
      waiting.delete(answer.group)
      log.warn({ group: answer.group, dropped: state.dropped }, 'answers can be placed again')
    }
    answer.placed()
  }

  return {
    send(group, address, outcome, placed) {
      const reason = failure(group, address, outcome)
      if (reason === undefined) return placed()
      const state = waiting.get(group) ?? { answers: new Set(), bytes: 0, dropped: 0 }
      waiting.set(group, state)
      const bytes = Buffer.byteLength(renderReply(address, outcome).content)
      if (state.answers.size >= waitingPerGroup || state.bytes + bytes > waitingBytesPerGroup) {
        if (state.dropped++ === 0) {
          log.error(
            { group, reason, waiting: state.answers.size, bytes: state.bytes },
            'too many answers wait for their place; further ones are given up',
          )
        }
        return placed()
      }
      // Said once, not for every answer: a log is a disk that can be filled, too.
      if (state.answers.size === 0)
        log.warn({ group, id: address.id, reason }, 'an answer cannot be placed yet')
      const answer: Waiting = { group, address, outcome, bytes, since: Date.now(), timer: undefined, placed }
      state.answers.add(answer)
      state.bytes += bytes
      retry(answer)
    },
    progress({ folder, dialect }, address, step) {
      const file = dialects[dialect].progress?.({ version: 1, id: address.id, ...step })
      if (!file) return
      const name = file.path.slice(file.path.indexOf('/') + 1)
      try {
        post(join(layout.ipc, folder, address.directory), file.content, {
          name,
          staging: layout.staging,
          mode: 0o600,
          owner: owners(folder),
        })
        begun.add(`${folder}/${address.id}`)
      } catch (error) {
        const reason = reasonOf(error)
        log.debug({ group: folder, id: address.id, reason }, 'progress could not be told')
      }
    },
    endProgress(group, address) {
      if (!begun.delete(`${group}/${address.id}`)) return
      const handle = openDirectory(join(layout.ipc, group, address.directory))
      if (typeof handle === 'string') return
      try {
        remove(`${handle.path}/${address.id}.progress.json`)
      } finally {
        handle.close()
      }
    },
    clear(group, before) {
      // What lies there later would be read by somebody who has not asked for it.
      if (before === undefined) for (const answer of [...(waiting.get(group)?.answers ?? [])]) release(answer)
      const rest = answerDirectories
        .map(directory => ({ directory, names: namesIn(group, directory) }))
        .filter(({ names }) => names.length > 0)
      const clearing = { group, rest, fresh: new Set<string>(), before }
      clearings.add(clearing)
      goOnClearing(clearing)
    },
    stop() {
      for (const clearing of clearings) while (!clearSome(clearing));
      clearings.clear()
      for (const { answers } of waiting.values()) for (const { timer } of answers) clearTimeout(timer)
      waiting.clear()
    },
  }
}

const answerDirectories: readonly string[] = replyAddressSchema.shape.directory.options

function answersIn(path: string): string[] {
  const handle = openDirectory(path)
  if (typeof handle === 'string') return []
  try {
    return readdirSync(handle.path).filter(name => name.endsWith('.json'))
  } finally {
    handle.close()
  }
}

/** Only names are touched, never what a link leads to; what its owner keeps from us stays. */
function removeFrom(path: string, names: readonly string[], before?: number): void {
  const handle = openDirectory(path)
  if (typeof handle === 'string') return
  try {
    for (const name of names) remove(`${handle.path}/${name}`, before)
  } finally {
    handle.close()
  }
}

function remove(file: string, before?: number): void {
  try {
    if (before === undefined || lstatSync(file).mtimeMs < before) unlinkSync(file)
  } catch {
    // Somebody was faster, or has put a directory there, which is in nobody's way.
  }
}
