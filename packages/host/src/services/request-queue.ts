import type { Group, Outcome } from '@hatchway/protocol'
import type { Replies } from '../outcomes/replies.ts'
import type { RequestRow, RequestStore } from '../store/types.ts'
import { createRequestAnswers } from './request-answers.ts'
import { createRequestCalls, type RequestCallsOptions } from './request-calls.ts'
import { clearTimers, interrupted, newWork, takenBack, tooLate, type Work } from './request-work.ts'

/**
 * Requests whose answer follows, from the moment they are stored until the answer lies in the group's directory.
 *
 *   state      in memory                              in the store   leaves it when
 *   waiting    service, work: in the queue of calls   waiting        its group has its turn
 *              question: with people                  waiting        they answer
 *              held: with the guard, then people      waiting        they decide; released, it is another request
 *   running    its service is being asked             running *      the service answers or fails
 *   finished   it has an outcome                      as before      the outcome is committed
 *   answered   its answer is being placed             answered       the file lies in the group's directory
 *
 *   * or waiting, where asking twice does no harm
 *
 * From waiting and running, a request is also finished when its time is up, when its group is gone, or when nobody
 * waits for it any longer. The first outcome counts. Nothing is lost by a crash: what is stored as waiting is taken up
 * again, what is running was interrupted, what is answered is placed.
 */
export interface RequestQueue {
  /** takes up what an earlier process left; what a service is needed for that is still starting waits for `ready` */
  resume(): void
  /** every service has started, or cannot */
  ready(): void
  /** it is stored */
  accept(request: RequestRow): void
  /** it has become another request, or none */
  forget(seq: number): void
  /** it was answered within a transaction: whoever is at work on it may stop */
  over(seq: number, outcome: Outcome): void
  /** answers one that waits for people; false: it was over */
  answer(seq: number, outcome: Outcome): boolean
  /** the group is no longer registered: everything it asked for is taken back */
  groupGone(folder: string): void
  /**
   * nobody waits for answers any longer: questions, what only reads, and what was to be answered and waits for a person
   * is taken back; what was accepted is done
   */
  containerGone(folder: string): void
  /** a person stopped the turn: nobody waits for what it had put to people; the container goes on */
  turnStopped(folder: string): void
  /** after a start: so it is for whatever a run of an earlier process had asked */
  runsGone(): void
  open(): readonly RequestRow[]
  /** false: it is over, even if its answer is not placed yet */
  isWaiting(seq: number): boolean
  /** a person has been asked something for the group, whose agent waits for the answer */
  waitsForPeople(folder: string): boolean
  /** whoever wanted it does not wait any longer: rules may still let it happen, but no person is asked about it */
  isAbandoned(seq: number): boolean
  stop(): Promise<void>
}

export interface RequestQueueOptions extends Omit<RequestCallsOptions, 'finish' | 'schedule'> {
  store: RequestStore
  group(folder: string): Group | undefined
  replies: Pick<Replies, 'send' | 'progress' | 'endProgress'>
  now(): number
  /** somebody has to look at it first; the signal says that this is over */
  held?(request: RequestRow, signal: AbortSignal): void
  /** whether a held one has been put to a person */
  isAsked?(seq: number): boolean
  /** the answer is durable */
  answered?(request: RequestRow, outcome: Outcome): void
}

/** the longest a timer can wait */
const longestTimerMs = 2_147_483_647
/** After this whoever waits is told until when a person may decide: most are decided by rules at once. */
const decidedSoonMs = 1000

export function createRequestQueue(options: RequestQueueOptions): RequestQueue {
  const { catalogue, store, replies, log, now } = options
  const workBySeq = new Map<number, Work>()
  /** stored by an earlier process for a service that has not started yet */
  const early: RequestRow[] = []
  let isScheduled = false
  let isStopping = false

  const schedule = () => {
    if (isScheduled || isStopping) return
    isScheduled = true
    setImmediate(() => {
      isScheduled = false
      if (isStopping) return
      try {
        answers.settle()
        calls.beginMore()
      } catch (error) {
        log.error({ err: error }, 'the request queue failed; retrying in a second')
        setTimeout(schedule, 1000).unref()
      }
    })
  }

  const finish = (work: Work, outcome: Outcome) => {
    if (work.outcome) return
    work.outcome = outcome
    clearTimers(work)
    calls.remove(work)
    answers.add(work)
    work.abort.abort(new Error(outcome.ok ? 'It is answered.' : outcome.error.message))
  }

  const leave = (work: Work) => {
    const { seq, group, reply } = work.request
    if (workBySeq.get(seq) === work) workBySeq.delete(seq)
    if (reply) replies.endProgress(group, reply)
  }

  const calls = createRequestCalls({ ...options, finish, schedule })
  const answers = createRequestAnswers({
    ...{ store, replies, now, schedule, over: leave, answered: options.answered },
  })

  const accept = (request: RequestRow) => {
    if (isStopping || workBySeq.has(request.seq)) return
    const work = newWork(request, options.group(request.group))
    workBySeq.set(request.seq, work)
    watchExpiry(work)
    if (request.kind === 'held') {
      work.patience = setTimeout(() => askForPatience(work), decidedSoonMs).unref()
      options.held?.(request, work.abort.signal)
    }
    if (request.kind !== 'service' && request.kind !== 'work') return
    calls.add(work)
    schedule()
  }

  const watchExpiry = (work: Work) => {
    const leftMs = work.request.expiresAt - now()
    work.expiry = setTimeout(
      () => (leftMs > longestTimerMs ? watchExpiry(work) : finish(work, tooLate(work.request))),
      Math.max(0, Math.min(leftMs, longestTimerMs)),
    ).unref()
  }

  /** Whoever waits has to wait as long as a person may take, or the decision comes for nobody. */
  const askForPatience = ({ request: { reply, expiresAt }, group, outcome }: Work) => {
    if (!reply || !group || outcome) return
    const until = new Date(expiresAt).toISOString()
    replies.progress(group, reply, { progress: 0, message: `waiting for a decision until ${until}`, until })
  }

  const ofGroup = (folder: string) =>
    [...workBySeq.values()].filter(({ request }) => request.group === folder)

  /** Nobody waits for it: people are not asked, or no longer. What rules decide goes on, as it was accepted. */
  const abandon = (work: Work, why: string) => {
    const { kind, reply } = work.request
    // What was asked without an id nobody ever waited for: a person may still let it happen.
    if (kind !== 'question' && (kind !== 'held' || reply === null)) return
    work.isAbandoned = true
    if (isWithPeople(work)) finish(work, takenBack(why))
  }
  const isWithPeople = ({ request: { seq, kind } }: Work): boolean =>
    kind === 'question' || (kind === 'held' && options.isAsked?.(seq) === true)

  return {
    resume() {
      for (const request of store.unfinished()) {
        if (request.reply) replies.endProgress(request.group, request.reply)
        if (request.status === 'answered') {
          if (request.outcome) answers.send(request, request.outcome)
          continue
        }
        const isKnown = request.kind !== 'service' || catalogue.find(request.tool) !== undefined
        if (request.status === 'waiting' && !isKnown) {
          early.push(request)
          continue
        }
        accept(request)
        const work = workBySeq.get(request.seq)
        if (work && request.status === 'running') finish(work, interrupted)
      }
    },
    ready() {
      for (const request of early.splice(0)) accept(request)
    },
    accept,
    forget(seq) {
      const work = workBySeq.get(seq)
      if (!work) return
      clearTimers(work)
      // Its time may just have been up: what was decided counts.
      answers.withdraw(work)
      leave(work)
    },
    over(seq, outcome) {
      const work = workBySeq.get(seq)
      if (!work) return
      // What is durable counts, even if a handler was faster by a moment.
      if (work.outcome === undefined) finish(work, outcome)
      work.outcome = outcome
      work.isStored = true
    },
    answer(seq, outcome) {
      const work = workBySeq.get(seq)
      if (!work || work.outcome) return false
      finish(work, outcome)
      return true
    },
    groupGone(folder) {
      for (const work of ofGroup(folder)) {
        work.isWanted = false
        finish(work, takenBack('Its group is no longer registered.'))
      }
    },
    containerGone(folder) {
      const gone = 'Its container is gone.'
      for (const work of ofGroup(folder)) {
        const onlyReads = calls.toolOf(work.request)?.annotations.readOnlyHint === true
        // Every command that wants an answer gets one: what nobody began with says so.
        work.isWanted = work.request.kind === 'held'
        if (onlyReads) finish(work, takenBack(gone))
        else abandon(work, gone)
      }
    },
    turnStopped(folder) {
      for (const work of ofGroup(folder)) abandon(work, 'Its turn was stopped.')
    },
    runsGone() {
      for (const work of workBySeq.values()) {
        if (typeof work.request.input.runId === 'string') abandon(work, 'Its run ended with the host.')
      }
    },
    isWaiting(seq) {
      const work = workBySeq.get(seq)
      return work !== undefined && !work.outcome
    },
    waitsForPeople: folder =>
      ofGroup(folder).some(
        work => !work.outcome && !work.isAbandoned && work.request.reply !== null && isWithPeople(work),
      ),
    isAbandoned: seq => workBySeq.get(seq)?.isAbandoned === true,
    open: () => [...workBySeq.values()].map(({ request }) => request),
    async stop() {
      isStopping = true
      for (const work of workBySeq.values()) {
        clearTimers(work)
        if (work.outcome === undefined) work.abort.abort(new Error('The host is stopping.'))
      }
      await calls.stop()
      try {
        answers.settle()
        // What could be placed at once is finished with.
        answers.settle()
      } catch (error) {
        log.error(
          { err: error },
          'answers could not be stored; their requests are asked again at the next start',
        )
      }
    },
  }
}
