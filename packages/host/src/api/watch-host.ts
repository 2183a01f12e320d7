import { changeKinds } from '../base/metrics/changes.ts'
import { livenessWarning } from '../chat/channels/liveness.ts'
import type { FeedEventAnswer } from './answers.ts'
import type { Host } from './host.ts'

type RunEvent = Extract<FeedEventAnswer, { kind: 'run' }>

/** Finds out what nobody tells of, by comparing: runs by their state, the rest by a few rows. */
export interface HostWatch {
  /** what there is now is not news */
  begin(): void
  poll(): void
}

export function watchHost(host: Host, publish: (make: () => FeedEventAnswer) => void): HostWatch {
  let runs = new Map<string, RunEvent>()
  let signs = new Map<string, string>()

  const compareRuns = () => {
    const now = new Map(
      (host.agents()?.queue.running() ?? []).map(({ runId, group, kind, state }): [string, RunEvent] => [
        runId,
        { kind: 'run', run_id: runId, group, run_kind: kind, state },
      ]),
    )
    for (const [id, run] of now) if (runs.get(id)?.state !== run.state) publish(() => run)
    for (const [id, run] of runs) {
      if (!now.has(id) && run.state !== 'ended') publish(() => ({ ...run, state: 'ended' }))
    }
    runs = now
  }
  const compareTables = () => {
    const noted = new Set(host.changes.take())
    const now = signsOf(host)
    const changed = changeKinds.filter(kind => noted.has(kind) || now.get(kind) !== signs.get(kind))
    signs = now
    for (const what of changed) publish(() => ({ kind: 'changed', what }))
  }
  return {
    begin() {
      host.changes.take()
      signs = signsOf(host)
      runs = new Map()
    },
    poll() {
      compareRuns()
      compareTables()
    },
  }
}

/** By the kind of change: a text that is another one when something has changed. */
function signsOf({ store, meter, retries, plugins, chats }: Host): Map<string, string> {
  const occurrences = store.agents.occurrences({ limit: 20 }).map(({ id, status }) => `${id} ${status}`)
  const approvals = store.approvals.list({ limit: 20 }).map(({ seq, status }) => `${seq} ${status}`)
  const questions = store.questions
    .open()
    .map(({ seq, answers }) => `${seq} ${answers.filter(Boolean).length}`)
  const signs = new Map([
    ['errors', String(meter.refused())],
    ['messages', `${store.lastMessageId()} ${store.countPending()}`],
    ['approvals', approvals.join()],
    ['questions', questions.join()],
    ['tasks', occurrences.join()],
    ['status', `${retries.problem() ?? ''} ${livenessWarning(chats?.liveness() ?? [], Date.now()) ?? ''}`],
  ])
  for (const [kind, text] of plugins.signs()) signs.set(kind, `${signs.get(kind) ?? ''} ${text}`)
  return signs
}
