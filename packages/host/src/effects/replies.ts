import { join } from 'node:path'
import { type Outcome, type ReplyAddress, renderReply } from '@hatchway/protocol'
import { type Owner, post } from '@hatchway/spool'
import type { Logger } from 'pino'
import { type Layout, ownedDirectory } from '../layout.ts'

/**
 * Answers (promise 5). A claimed file stays in the spool until its answer lies in the group's directory, so a crash
 * in between is mended by answering again. An answer that cannot be placed, because the disk is full or the group's
 * directory is in the way, is tried again with growing pauses, and given up, with a word to the operator, after a day.
 */
export interface Replies {
  /** `placed` is called once the answer is there, or was given up */
  send(group: string, address: ReplyAddress, outcome: Outcome, placed: () => void): void
  stop(): void
}

const giveUpMs = 86_400_000

export function createReplies(options: { layout: Layout; owner: Owner | undefined; log: Logger }): Replies {
  const { layout, owner, log } = options
  const timers = new Set<NodeJS.Timeout>()

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

  const attempt = (
    group: string,
    address: ReplyAddress,
    outcome: Outcome,
    placed: () => void,
    pauseMs: number,
    since: number,
  ) => {
    try {
      place(group, address, outcome)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (Date.now() - since > giveUpMs) {
        log.error(
          { group, id: address.id, reason },
          'an answer could not be placed for a day and was given up',
        )
        return placed()
      }
      log.warn({ group, id: address.id, reason, pauseMs }, 'an answer cannot be placed yet')
      const timer = setTimeout(() => {
        timers.delete(timer)
        attempt(group, address, outcome, placed, Math.min(60_000, pauseMs * 2), since)
      }, pauseMs)
      timers.add(timer)
      return
    }
    placed()
  }

  return {
    send: (group, address, outcome, placed) => attempt(group, address, outcome, placed, 100, Date.now()),
    stop() {
      for (const timer of timers) clearTimeout(timer)
      timers.clear()
    },
  }
}
