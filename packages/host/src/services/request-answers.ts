import type { Outcome } from '@hatchway/protocol'
import type { Replies } from '../outcomes/replies.ts'
import type { RequestRow, RequestStore } from '../store/types.ts'
import type { Work } from './request-work.ts'

/** The way of an outcome: known → durable, many in one commit → its answer lies in the group's directory. */
export interface RequestAnswers {
  /** it has an outcome */
  add(work: Work): void
  withdraw(work: Work): void
  /** takes every outcome one step further; throws, with nothing lost, where the store fails */
  settle(): void
  send(request: RequestRow, outcome: Outcome): void
}

export function createRequestAnswers(options: {
  store: RequestStore
  replies: Pick<Replies, 'send'>
  now(): number
  /** there is something to settle */
  schedule(): void
  /** its outcome is durable, or somebody else's outcome was first */
  over(work: Work): void
  answered?: ((request: RequestRow, outcome: Outcome) => void) | undefined
}): RequestAnswers {
  const { store, replies, now, schedule, over } = options
  let finished: Work[] = []
  let placed: number[] = []

  const place = (work: Work, isFirst: boolean) => {
    const { request, outcome, isWanted } = work
    over(work)
    if (!isFirst || !outcome) return
    options.answered?.(request, outcome)
    if (isWanted) send(request, outcome)
    else isPlaced(request.seq)
  }

  const isPlaced = (seq: number) => {
    placed.push(seq)
    schedule()
  }

  const send: RequestAnswers['send'] = ({ seq, group, reply }, outcome) => {
    if (reply) replies.send(group, reply, outcome, () => isPlaced(seq))
    else isPlaced(seq)
  }

  return {
    add(work) {
      finished.push(work)
      schedule()
    },
    withdraw(work) {
      finished = finished.filter(other => other !== work)
    },
    settle() {
      if (finished.length > 0) {
        const batch = finished
        const answers = batch.flatMap(({ request: { seq }, outcome, isStored }) =>
          outcome && !isStored ? [{ seq, outcome }] : [],
        )
        const counted = answers.length > 0 ? store.answer(answers, now()) : new Set<number>()
        finished = []
        for (const work of batch) place(work, work.isStored || counted.has(work.request.seq))
      }
      if (placed.length > 0) {
        store.placed(placed)
        placed = []
      }
    },
    send,
  }
}
