import type { Group, Outcome } from '@hatchway/protocol'
import { refused } from '../base/outcome.ts'
import type { RequestRow } from '../store/types.ts'

/** One open request in memory. request-queue.ts has its states. */
export interface Work {
  request: RequestRow
  group: Group | undefined
  /** aborted when there is an outcome, or when the host stops */
  abort: AbortController
  expiry: NodeJS.Timeout | undefined
  /** tells whoever waits that a person may take longer */
  patience: NodeJS.Timeout | undefined
  /** somebody still wants the answer */
  isWanted: boolean
  isAbandoned: boolean
  outcome: Outcome | undefined
  /** the outcome was made durable by somebody else */
  isStored: boolean
}

export const newWork = (request: RequestRow, group: Group | undefined): Work => ({
  request,
  group,
  abort: new AbortController(),
  expiry: undefined,
  patience: undefined,
  isWanted: true,
  isAbandoned: false,
  outcome: undefined,
  isStored: false,
})

export const clearTimers = ({ expiry, patience }: Work): void => {
  clearTimeout(expiry)
  clearTimeout(patience)
}

export const tooLate = ({ kind, createdAt, expiresAt }: RequestRow): Outcome => {
  const seconds = Math.round((expiresAt - createdAt) / 1000)
  const message =
    kind === 'held'
      ? `Nobody decided within ${seconds} seconds, so it was not done.`
      : kind === 'question'
        ? `Nobody answered within ${seconds} seconds.`
        : `The service did not answer within ${seconds} seconds. It was told to stop, but may have done it all the same.`
  return refused('expired', message)
}

export const interrupted = refused(
  'interrupted',
  'The host stopped while the service was at work. It may have happened or not: look before asking again.',
)

export const takenBack = (why: string): Outcome => refused('cancelled', `The request was taken back: ${why}`)

export const notThere = (tool: string): Outcome =>
  refused('unavailable', `There is no service named ${tool} on this host any longer.`)
