import { errorCode } from '@hatchway/spool'
import { textWithFiles } from '../../store/attachment-text.ts'
import type { IncomingRow } from '../../store/types.ts'
import type { Lifecycle } from './lifecycle.ts'
import type { SessionParts } from './parts.ts'

/** unanswered inputs of one run, at most: the rest waits in the store and not in memory */
export const inputsAtOnce = 50

/** Hands what people write to the running agent, as files in its inbox. */
export interface FollowUps {
  /** the inbox is empty and takes follow-ups */
  ready(): void
  /** how many it takes at the moment */
  room(): number
  /** Throws, with nothing done, if the store fails. */
  feed(rows: readonly IncomingRow[]): void
  isByDeploy(): boolean
}

export function createFollowUps(parts: SessionParts, lifecycle: Lifecycle): FollowUps {
  const { options, ledger, report, sandbox, transcript, about } = parts
  let isInboxOpen = false
  let isByDeploy = options.rows.length > 0 && options.rows.every(isFromDeploy)

  /** whether the agent finds it in its inbox */
  const hand = (row: IncomingRow, notices: readonly string[]): boolean => {
    try {
      options.input.post(row, notices)
      return true
    } catch (error) {
      // The disk is full, or the agent has put a directory in its place. It goes to the next run, with all that follow.
      report.isInboxBlocked = true
      options.log.warn({ err: error, ...about }, 'a follow-up could not be handed over')
      transcript.add(
        'notice',
        `A follow-up could not be handed over (${errorCode(error)}); the next run gets it.`,
      )
      return false
    }
  }

  return {
    ready() {
      isInboxOpen = true
    },
    room() {
      const isListening = lifecycle.state() === 'working' || lifecycle.state() === 'idle'
      const isAlive = !sandbox.isGone() && sandbox.killedBecause() === undefined
      const takesAny = options.start.kind === 'chat' && isInboxOpen && !parts.isCutOff()
      return isListening && isAlive && takesAny ? inputsAtOnce - ledger.openCount() : 0
    },
    feed(rows) {
      options.store.give(
        rows.map(({ id }) => id),
        options.start.run_id,
      )
      let notices = parts.calls.notices()
      for (const row of rows) {
        if (!hand(row, notices)) break
        notices = []
        ledger.give(row, lifecycle.state() === 'working')
        isByDeploy &&= isFromDeploy(row)
        transcript.keep('input', textWithFiles(row))
      }
      if (ledger.openCount() === 0) lifecycle.close()
      else if (lifecycle.state() === 'idle') lifecycle.enter('working')
    },
    isByDeploy: () => isByDeploy,
  }
}

/** The host itself writes to agents in the channel `host`. */
const isFromDeploy = ({ channel, externalId }: IncomingRow): boolean =>
  channel === 'host' && externalId?.startsWith('deploy:') === true
