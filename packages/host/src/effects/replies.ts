import { join } from 'node:path'
import { type Outcome, type ReplyAddress, renderReply } from '@hatchway/protocol'
import { type Owner, post } from '@hatchway/spool'
import type { Logger } from 'pino'
import { type Layout, ownedDirectory } from '../layout.ts'

/**
 * Answers (promise 5). A claimed file stays in the spool until its answer lies in the group's directory, so a crash
 * in between is mended by answering again. An answer that cannot be placed, because the disk is full or the group's
 * directory is in the way, is tried again with growing pauses, and given up, with a word to the operator, after a day.
 * So is one that finds too many of its group waiting already (promise 7). The journal has it either way: whoever posts
 * the request again gets it.
 */
export interface Replies {
  /** `placed` is called once the answer is there, or was given up */
  send(group: string, address: ReplyAddress, outcome: Outcome, placed: () => void): void
  stop(): void
}

const giveUpMs = 86_400_000
const waitingPerGroup = 1000

export function createReplies(options: { layout: Layout; owner: Owner | undefined; log: Logger }): Replies {
  const { layout, owner, log } = options
  const timers = new Set<NodeJS.Timeout>()
  /** how many answers of a group wait for their place, and how many were given up since the first of them */
  const waiting = new Map<string, { count: number; dropped: number }>()

  const place = (group: string, address: ReplyAddress, outcome: Outcome) => {
    const file = renderReply(address, outcome)
    const [directory = '', name = ''] = file.path.split('/')
    const target = join(layout.ipc, group, directory)
    const options = { name, staging: layout.staging, mode: 0o600, owner }
    try {
      post(target, file.content, options)
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
      ownedDirectory(target, owner)
      post(target, file.content, options)
    }
  }

  const retry = (
    group: string,
    address: ReplyAddress,
    outcome: Outcome,
    placed: () => void,
    pauseMs: number,
    since: number,
  ) => {
    const timer = setTimeout(() => {
      timers.delete(timer)
      const reason = failure(group, address, outcome)
      if (reason !== undefined && Date.now() - since <= giveUpMs) {
        return retry(group, address, outcome, placed, Math.min(60_000, pauseMs * 2), since)
      }
      if (reason !== undefined) {
        log.error(
          { group, id: address.id, reason },
          'an answer could not be placed for a day and was given up',
        )
      }
      release(group)
      placed()
    }, pauseMs)
    timers.add(timer)
  }

  const failure = (group: string, address: ReplyAddress, outcome: Outcome): string | undefined => {
    try {
      place(group, address, outcome)
      return undefined
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }

  const release = (group: string) => {
    const state = waiting.get(group)
    if (!state || --state.count > 0) return
    waiting.delete(group)
    log.warn({ group, dropped: state.dropped }, 'answers can be placed again')
  }

  return {
    send(group, address, outcome, placed) {
      const reason = failure(group, address, outcome)
      if (reason === undefined) return placed()
      const state = waiting.get(group) ?? { count: 0, dropped: 0 }
      waiting.set(group, state)
      if (state.count >= waitingPerGroup) {
        if (state.dropped++ === 0) {
          log.error(
            { group, reason },
            `more than ${waitingPerGroup} answers wait for their place; further ones are given up`,
          )
        }
        return placed()
      }
      // Said once, not for every answer: a log is a disk that can be filled, too.
      if (state.count++ === 0) log.warn({ group, id: address.id, reason }, 'an answer cannot be placed yet')
      retry(group, address, outcome, placed, 100, Date.now())
    },
    stop() {
      for (const timer of timers) clearTimeout(timer)
      timers.clear()
    },
  }
}
