import { type Group, type Outcome, refusal } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { Asked, Work as HostWork } from '../commands/service-tools.ts'
import type { Replies } from '../outcomes/replies.ts'
import type { RequestRow, RequestStore } from '../store/service-types.ts'
import { outcomeOfAnswer, outcomeOfFailure } from './answer.ts'
import type { Catalogue } from './catalogue.ts'

/**
 * Requests whose answer follows, from the moment they are stored until the answer lies in the group's directory.
 * Services are asked beside everything else: groups take turns, each has so many at work at once, and whoever takes
 * too long is answered for. Nothing here is lost by a crash: what was stored is found again at the next start.
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
  /** somebody has to look at it before it happens, and its end is not durable yet */
  isHeld(seq: number): boolean
  /** a person has been asked something for the group, whose agent waits for the answer */
  waitsForPeople(folder: string): boolean
  /** whoever wanted it does not wait any longer: rules may still let it happen, but no person is asked about it */
  isAbandoned(seq: number): boolean
  stop(): Promise<void>
}

export interface RequestQueueOptions {
  catalogue: Catalogue
  /** what the host itself does for a request of the kind `work`, by its name */
  work?(name: string): HostWork | undefined
  store: RequestStore
  group(folder: string): Group | undefined
  replies: Pick<Replies, 'send' | 'progress' | 'endProgress'>
  timezone: string
  log: Logger
  now(): number
  /** somebody has to look at it first; the signal says that this is over */
  held?(request: RequestRow, signal: AbortSignal): void
  /** whether a held one has been put to a person */
  isAsked?(seq: number): boolean
  /** the answer is durable */
  answered?(request: RequestRow, outcome: Outcome): void
  /** so many of one group, and of all, may be at work at once */
  atOnce?: { perGroup: number; all: number }
}

interface Work {
  request: RequestRow
  group: Group | undefined
  abort: AbortController
  expiry: NodeJS.Timeout | undefined
  /** tells whoever waits that it takes longer */
  patience: NodeJS.Timeout | undefined
  /** whether somebody still wants the answer */
  isWanted: boolean
  isAbandoned: boolean
  outcome: Outcome | undefined
  /** whether the outcome is durable already */
  isStored: boolean
}

interface Lane {
  waiting: Work[]
  running: number
}

const manyAtOnce = { perGroup: 32, all: 1000 }
/** between two words about how far a request has come */
const progressMs = 100
/** the longest a timer can wait */
const longestTimerMs = 2_147_483_647
const farewellMs = 2000
/** After this whoever waits is told until when a person may decide: most are decided by rules at once. */
const decidedSoonMs = 1000
/** of what the host says about its own work */
const largestReport = 1_048_576

export function createRequestQueue(options: RequestQueueOptions): RequestQueue {
  const { catalogue, store, replies, log, now, atOnce = manyAtOnce } = options
  const works = new Map<number, Work>()
  const lanes = new Map<string, Lane>()
  /** groups that have something waiting, in the order of their turns */
  let turns: string[] = []
  let running = 0
  let finished: Work[] = []
  let placed: number[] = []
  let scheduled = false
  let isStopping = false
  const early: RequestRow[] = []
  /** handlers that have not ended, heard or not */
  const handlers = new Set<Promise<void>>()

  const schedule = () => {
    if (scheduled || isStopping) return
    scheduled = true
    setImmediate(() => {
      scheduled = false
      if (isStopping) return
      try {
        settle()
        beginMore()
      } catch (error) {
        log.error({ err: error }, 'requests could not be looked after; it is tried again in a second')
        setTimeout(schedule, 1000).unref()
      }
    })
  }

  const laneOf = (folder: string): Lane => {
    let lane = lanes.get(folder)
    if (!lane) {
      lane = { waiting: [], running: 0 }
      lanes.set(folder, lane)
    }
    return lane
  }

  const accept = (request: RequestRow) => {
    if (isStopping || works.has(request.seq)) return
    const work: Work = {
      request,
      group: options.group(request.group),
      abort: new AbortController(),
      expiry: undefined,
      patience: undefined,
      isWanted: true,
      isAbandoned: false,
      outcome: undefined,
      isStored: false,
    }
    works.set(request.seq, work)
    watchExpiry(work)
    if (request.kind === 'held') {
      work.patience = setTimeout(() => askForPatience(work), decidedSoonMs).unref()
      options.held?.(request, work.abort.signal)
    }
    if (request.kind !== 'service' && request.kind !== 'work') return
    const lane = laneOf(request.group)
    lane.waiting.push(work)
    if (lane.waiting.length === 1) turns.push(request.group)
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

  /** The first outcome counts; a handler that answers twice, or late, is not heard. */
  const finish = (work: Work, outcome: Outcome) => {
    if (work.outcome) return
    work.outcome = outcome
    clearTimeout(work.expiry)
    clearTimeout(work.patience)
    finished.push(work)
    work.abort.abort(new Error(outcome.ok ? 'It is answered.' : outcome.error.message))
    schedule()
  }

  const leave = (work: Work) => {
    if (works.get(work.request.seq) === work) works.delete(work.request.seq)
    const { group, reply } = work.request
    if (reply) replies.endProgress(group, reply)
  }

  const settle = () => {
    if (finished.length > 0) {
      const works = finished
      const answers = works.flatMap(({ request: { seq }, outcome, isStored }) =>
        outcome && !isStored ? [{ seq, outcome }] : [],
      )
      const counted = answers.length > 0 ? store.answer(answers, now()) : new Set<number>()
      finished = []
      for (const work of works) place(work, work.isStored || counted.has(work.request.seq))
    }
    if (placed.length > 0) {
      store.placed(placed)
      placed = []
    }
  }

  const place = (work: Work, isFirst: boolean) => {
    const { request, outcome } = work
    leave(work)
    if (!isFirst || !outcome) return
    options.answered?.(request, outcome)
    send(request, outcome, work.isWanted)
  }

  const send = ({ seq, group, reply }: RequestRow, outcome: Outcome, isWanted: boolean) => {
    const done = () => {
      placed.push(seq)
      schedule()
    }
    if (isWanted && reply) replies.send(group, reply, outcome, done)
    else done()
  }

  const beginMore = () => {
    const chosen: Work[] = []
    const passedOver: string[] = []
    while (turns.length > 0 && running + chosen.length < atOnce.all) {
      const folder = turns.shift() ?? ''
      const lane = laneOf(folder)
      lane.waiting = lane.waiting.filter(({ outcome }) => outcome === undefined)
      if (lane.waiting.length === 0) continue
      if (lane.running >= atOnce.perGroup) {
        passedOver.push(folder)
        continue
      }
      const work = lane.waiting.shift()
      if (work) {
        lane.running++
        chosen.push(work)
      }
      if (lane.waiting.length > 0) turns.push(folder)
    }
    turns.push(...passedOver)
    const once = chosen.filter(({ request }) => toolOf(request)?.repeatable !== true)
    if (once.length > 0) {
      try {
        store.begin(once.map(({ request }) => request.seq))
      } catch (error) {
        for (const work of chosen) {
          const lane = laneOf(work.request.group)
          lane.running--
          lane.waiting.unshift(work)
          if (!turns.includes(work.request.group)) turns.push(work.request.group)
        }
        throw error
      }
    }
    for (const work of chosen) {
      running++
      ask(work).finally(() => {
        running--
        const lane = laneOf(work.request.group)
        lane.running--
        if (lane.running === 0 && lane.waiting.length === 0) lanes.delete(work.request.group)
        schedule()
      })
    }
  }

  const ofGroup = (folder: string) => [...works.values()].filter(({ request }) => request.group === folder)

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

  const toolOf = ({ kind, tool: name }: RequestRow): Asked | undefined => {
    if (kind === 'work') {
      const work = options.work?.(name)
      return work && { ...work, service: 'host', answerBytes: largestReport, annotations: {} }
    }
    const tool = catalogue.find(name)
    return tool?.kind === 'later' ? tool : undefined
  }

  const ask = async (work: Work): Promise<void> => {
    const { request, group, abort } = work
    const tool = toolOf(request)
    if (!group) return finish(work, takenBack('Its group is no longer registered.'))
    if (!tool) {
      return finish(work, {
        ok: false,
        error: refusal('unavailable', `There is no service named ${request.tool} on this host any longer.`),
      })
    }
    // Whoever does not hear that it is to stop must not keep the place: the request is answered without it.
    const stopping = new Promise<void>(resolve => {
      abort.signal.addEventListener('abort', () => resolve(), { once: true })
    })
    const asking = (async () => {
      try {
        const answer = await tool.call(request.input, {
          group: { folder: group.folder, jid: group.jid, name: group.name, main: group.main },
          requestId: request.reply?.id ?? String(request.seq),
          seq: request.seq,
          signal: abort.signal,
          progress: progressOf(work, group),
          log: log.child({
            service: tool.service,
            tool: tool.name,
            group: group.folder,
            request: request.seq,
          }),
          timezone: options.timezone,
        })
        finish(work, outcomeOfAnswer(answer, tool.answerBytes))
      } catch (error) {
        // What was not done before the host stops is asked again, or answered for, at the next start.
        if (isStopping) return
        if (work.outcome === undefined) {
          log.warn(
            { err: error, service: tool.service, tool: tool.name, group: group.folder },
            'a service failed',
          )
        }
        finish(work, outcomeOfFailure(error))
      }
    })().finally(() => handlers.delete(asking))
    handlers.add(asking)
    await Promise.race([asking, stopping])
  }

  const progressOf = (work: Work, group: Group) => {
    let saidAt = Number.NEGATIVE_INFINITY
    let furthest = Number.NEGATIVE_INFINITY
    return ({ progress, total, message }: { progress: number; total?: number; message?: string }) => {
      // Towards an agent progress only ever rises.
      if (work.outcome || !(progress > furthest)) return
      const time = performance.now()
      if (time - saidAt < progressMs) return
      saidAt = time
      furthest = progress
      if (!work.request.reply) return
      replies.progress(group, work.request.reply, {
        progress,
        ...(total === undefined ? {} : { total }),
        ...(message === undefined ? {} : { message: message.slice(0, 1000).toWellFormed() }),
      })
    }
  }

  return {
    resume() {
      for (const request of store.unfinished()) {
        if (request.reply) replies.endProgress(request.group, request.reply)
        if (request.status === 'answered') {
          if (request.outcome) send(request, request.outcome, true)
          continue
        }
        const isKnown = request.kind !== 'service' || catalogue.find(request.tool) !== undefined
        if (request.status === 'waiting' && !isKnown) {
          early.push(request)
          continue
        }
        accept(request)
        const work = works.get(request.seq)
        if (work && request.status === 'running') finish(work, interrupted)
      }
    },
    ready() {
      for (const request of early.splice(0)) accept(request)
    },
    accept,
    forget(seq) {
      const work = works.get(seq)
      if (!work) return
      clearTimeout(work.expiry)
      clearTimeout(work.patience)
      // Its time may just have been up: what was decided counts.
      finished = finished.filter(other => other !== work)
      leave(work)
    },
    over(seq, outcome) {
      const work = works.get(seq)
      if (!work) return
      // What is durable counts, even if a handler was faster by a moment.
      if (work.outcome === undefined) finish(work, outcome)
      work.outcome = outcome
      work.isStored = true
    },
    answer(seq, outcome) {
      const work = works.get(seq)
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
        const onlyReads = toolOf(work.request)?.annotations.readOnlyHint === true
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
      for (const work of works.values()) {
        if (typeof work.request.input.runId === 'string') abandon(work, 'Its run ended with the host.')
      }
    },
    isWaiting(seq) {
      const work = works.get(seq)
      return work !== undefined && !work.outcome
    },
    waitsForPeople: folder =>
      ofGroup(folder).some(
        work => !work.outcome && !work.isAbandoned && work.request.reply !== null && isWithPeople(work),
      ),
    isAbandoned: seq => works.get(seq)?.isAbandoned === true,
    isHeld: seq => works.get(seq)?.request.kind === 'held',
    open: () => [...works.values()].map(({ request }) => request),
    async stop() {
      isStopping = true
      turns = []
      for (const work of works.values()) {
        clearTimeout(work.expiry)
        clearTimeout(work.patience)
        if (work.outcome === undefined) work.abort.abort(new Error('The host is stopping.'))
      }
      const patience = new AbortController()
      await Promise.race([Promise.all(handlers), pause(farewellMs, patience.signal)])
      patience.abort()
      try {
        settle()
        // What could be placed at once is finished with.
        settle()
      } catch (error) {
        log.error(
          { err: error },
          'answers could not be stored; their requests are asked again at the next start',
        )
      }
    },
  }
}

const pause = (ms: number, signal: AbortSignal) =>
  new Promise<void>(resolve => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })

const tooLate = ({ kind, createdAt, expiresAt }: RequestRow): Outcome => {
  const seconds = Math.round((expiresAt - createdAt) / 1000)
  const message =
    kind === 'held'
      ? `Nobody decided within ${seconds} seconds, so it was not done.`
      : kind === 'question'
        ? `Nobody answered within ${seconds} seconds.`
        : `The service did not answer within ${seconds} seconds. It was told to stop, but may have done it all the same.`
  return { ok: false, error: refusal('expired', message) }
}

const interrupted: Outcome = {
  ok: false,
  error: refusal(
    'interrupted',
    'The host stopped while the service was at work. It may have happened or not: look before asking again.',
  ),
}

const takenBack = (why: string): Outcome => ({
  ok: false,
  error: refusal('cancelled', `The request was taken back: ${why}`),
})
