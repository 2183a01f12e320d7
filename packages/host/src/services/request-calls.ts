import { once } from 'node:events'
import type { Group, Outcome } from '@hatchway/protocol'
import type { Logger } from 'pino'
import { createKeyedQueue } from '../base/keyed-queue.ts'
import { within } from '../base/pause.ts'
import type { Asked, Work as HostWork } from '../commands/service-tools.ts'
import type { Replies } from '../outcomes/replies.ts'
import type { RequestRow, RequestStore } from '../store/types.ts'
import { outcomeOfAnswer, outcomeOfFailure } from './answer.ts'
import type { Catalogue } from './catalogue.ts'
import { notThere, takenBack, type Work } from './request-work.ts'

/** Asks services, and the host itself, for what requests want. Groups take turns, and each has so many at work at once. */
export interface RequestCalls {
  add(work: Work): void
  remove(work: Work): void
  /** asks for as many as may be at work now; throws, with nothing begun, where the store fails */
  beginMore(): void
  /** what a request is answered by; undefined: nothing, or people */
  toolOf(request: RequestRow): Asked | undefined
  /** waits a moment for those at work */
  stop(): Promise<void>
}

export interface RequestCallsOptions {
  catalogue: Catalogue
  /** what the host itself does for a request of the kind `work`, by its name */
  work?(name: string): HostWork | undefined
  store: Pick<RequestStore, 'begin'>
  replies: Pick<Replies, 'progress'>
  timezone(folder: string): string
  log: Logger
  /** so many of one group, and of all, may be at work at once */
  atOnce?: { perGroup: number; all: number }
  /** the first outcome counts */
  finish(work: Work, outcome: Outcome): void
  /** there is room for more */
  schedule(): void
}

const usualAtOnce = { perGroup: 32, all: 1000 }
const farewellMs = 2000
/** between two words about how far a request has come */
const progressMs = 100
/** of what the host says about its own work */
const largestReport = 1_048_576

export function createRequestCalls(options: RequestCallsOptions): RequestCalls {
  const { catalogue, store, log, finish, schedule, atOnce = usualAtOnce } = options
  const queue = createKeyedQueue<Work>({ perKey: atOnce.perGroup, all: atOnce.all })
  /** handlers that have not ended, heard or not */
  const handlers = new Set<Promise<void>>()
  let isStopping = false

  const toolOf = ({ kind, tool: name }: RequestRow): Asked | undefined => {
    if (kind === 'work') {
      const work = options.work?.(name)
      return work && { ...work, service: 'host', answerBytes: largestReport, annotations: {} }
    }
    const tool = catalogue.find(name)
    return tool?.kind === 'later' ? tool : undefined
  }

  const beginMore = () => {
    const chosen: Work[] = []
    for (let turn = queue.next(); turn; turn = queue.next()) chosen.push(turn.item)
    const unrepeatable = chosen.filter(({ request }) => toolOf(request)?.repeatable !== true)
    try {
      if (unrepeatable.length > 0) store.begin(unrepeatable.map(({ request }) => request.seq))
    } catch (error) {
      for (const work of chosen.toReversed()) {
        queue.putBack(work.request.group, work)
        queue.done(work.request.group)
      }
      throw error
    }
    for (const work of chosen) {
      void ask(work).finally(() => {
        queue.done(work.request.group)
        schedule()
      })
    }
  }

  const ask = async (work: Work): Promise<void> => {
    const { request, group, abort } = work
    const tool = toolOf(request)
    if (!group) return finish(work, takenBack('Its group is no longer registered.'))
    if (!tool) return finish(work, notThere(request.tool))
    const calling = call(work, group, tool).finally(() => handlers.delete(calling))
    handlers.add(calling)
    // Whoever does not hear that it is to stop must not keep the place: the request is answered without it.
    await Promise.race([calling, once(abort.signal, 'abort')])
  }

  const call = async (work: Work, group: Group, tool: Asked): Promise<void> => {
    const { request, abort } = work
    const { folder, jid, name, main } = group
    const about = { service: tool.service, tool: tool.name, group: folder }
    try {
      const answer = await tool.call(request.input, {
        group: { folder, jid, name, main },
        requestId: request.reply?.id ?? String(request.seq),
        seq: request.seq,
        signal: abort.signal,
        progress: progressOf(work, group, options.replies),
        log: log.child({ ...about, request: request.seq }),
        timezone: options.timezone(folder),
      })
      finish(work, outcomeOfAnswer(answer, tool.answerBytes))
    } catch (error) {
      // What was not done before the host stops is asked again, or answered for, at the next start.
      if (isStopping) return
      if (work.outcome === undefined) log.warn({ err: error, ...about }, 'a service failed')
      finish(work, outcomeOfFailure(error))
    }
  }

  return {
    add: work => queue.add(work.request.group, work),
    remove: work => queue.remove(work.request.group, work),
    beginMore,
    toolOf,
    async stop() {
      isStopping = true
      await within(farewellMs, Promise.all(handlers))
    },
  }
}

/** Tells whoever waits how far it has come: not too often, and only ever further. */
function progressOf(work: Work, group: Group, replies: Pick<Replies, 'progress'>) {
  let saidAt = Number.NEGATIVE_INFINITY
  let furthest = Number.NEGATIVE_INFINITY
  return ({ progress, total, message }: { progress: number; total?: number; message?: string }) => {
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
