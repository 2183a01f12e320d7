import type { Chats } from '../chat/chats.ts'
import type { Effect } from '../commands/effects.ts'
import type { ServiceListings } from '../outcomes/service-listings.ts'
import type { RequestQueue } from '../services/request-queue.ts'
import type { DaemonKernel } from './kernel.ts'
import type { RunEnds } from './run-ends.ts'
import { openRuns } from './runs.ts'

/** Runs agents and keeps the schedule, unless the host stops before that. */
export async function startRuns(
  kernel: DaemonKernel,
  parts: {
    requests: RequestQueue
    listings: ServiceListings
    chats: Chats
    runEnds: RunEnds
    mayBegin(folder: string): boolean
  },
): Promise<void> {
  const { agents, contexts, hooks, notices, ownership, plugins, retries, snapshots, spool } = kernel
  const { requests, listings, chats, runEnds } = parts
  const show = (effect: Effect) => {
    snapshots.changed(effect)
    snapshots.settle(false)
  }
  const runs = await retries.untilStored('starting agents', () =>
    openRuns({
      ...kernel,
      typing: chats.typing,
      progress: chats.progress,
      liveTexts: chats.liveTexts,
      said: () => notices.publish({ kind: 'message_queued' }),
      begins: (folder, run) => {
        contexts.begins(folder, { ...run, shares: hooks.shares(folder) })
        listings.show(folder)
      },
      cutOff: (group, runId, by) =>
        retries.inBackground('telling an agent that its turn was stopped', () =>
          chats.inbound.note(
            group,
            `stopped:${runId}`,
            `${by} stopped your last turn before it was finished. What you had done until then stays done.`,
          ),
        ),
      waitsForPeople: requests.waitsForPeople,
      turnStopped: folder => {
        requests.turnStopped(folder)
        const isAtWork = () =>
          agents
            .runs()
            ?.queue.running()
            .some(({ group, state }) => group === folder && state === 'working')
        // Its next turn may have begun meanwhile, and somebody waits for that one.
        spool.whenDrained(folder, () => isAtWork() || requests.turnStopped(folder))
      },
      gone: runEnds.gone,
      decided: runEnds.decided,
      mayBegin: folder => !runEnds.isLeaving(folder) && parts.mayBegin(folder),
      tasksChanged: folder => {
        kernel.changes.note('tasks')
        show({ kind: 'tasks_changed', folder })
      },
      todosChanged: folder => show({ kind: 'todos_changed', folder }),
      taskKinds: plugins.taskKinds,
      hooks: plugins.runs,
      modelChanged: () => kernel.changes.note('status'),
      settle: ownership.settle,
    }),
  )
  if (!agents.areRunning(runs)) return runs.stop()
  const { queue, scheduler } = runs
  notices.on('agent_called', queue.kick)
  notices.on('group_removed', queue.kick)
  notices.on('tasks_changed', scheduler.kick)
  notices.on('context_reset', ({ folder }) => queue.forget(folder))
  notices.on('run_finished', ({ folder, runId }) => queue.finish(folder, runId))
  notices.on('session_over', ({ folder, runId }) => {
    queue.close(folder, runId)
    queue.kick()
  })
  await plugins.start()
  scheduler.start()
  // After runs that an earlier process had left are ended, and before any begins that has not waited for it.
  ownership.settleAll()
  queue.kick()
}
