import { createBegin, currentRun, skipped } from './run-queue/begin.ts'
import type { Place, RunQueue, RunQueueOptions } from './run-queue/types.ts'
import { createWakeUps } from './run-queue/wake-ups.ts'
import type { Session } from './session.ts'

export type { RunQueue, RunQueueOptions } from './run-queue/types.ts'

const afterFailureMs = 1000

/**
 * Decides which group runs, and when. Each group has one session at most, and `agents.atOnce` of them run at a time. A
 * check of the queue does this, in this order:
 *
 *   1. a session whose group is no longer registered is ended
 *   2. messages that wait go into the group's session, if it has one; otherwise the group joins the line
 *   3. each group in the line, in the order in which it joined, begins a run. It stays in the line while it has a
 *      session that has to make room for a task, while it pauses after a failure, while its last run is not decided, and
 *      while all places are taken
 *   4. if groups are still in the line and all places are taken, an idle session is asked to finish
 *
 * Messages and tasks of one group take turns. A task is never fed with what people write meanwhile. What goes wrong with
 * one group is tried again, and delays nobody else.
 */
export function createRunQueue(options: RunQueueOptions): RunQueue {
  const { config, store, log } = options
  const places = new Map<string, Place>()
  /** folders of groups that want to begin a run, first come, first served */
  let line = new Set<string>()

  const placeOf = (folder: string): Place => {
    const place = places.get(folder) ?? newPlace(folder)
    places.set(folder, place)
    return place
  }
  const sessions = () => [...places.values()].flatMap(({ session }) => session ?? [])
  const isFull = () => sessions().length >= config.agents.atOnce
  const mayBegin = (folder: string) => options.mayBegin?.(folder) ?? true

  const check = () => {
    for (const session of sessions()) {
      if (!session.isRegistered()) session.kill('its group is no longer registered')
    }
    for (const folder of store.groupsWaiting()) {
      const { session } = placeOf(folder)
      if (session) attempt(folder, place => feed(place, session))
      else line.add(folder)
    }
    const waiting = line
    line = new Set()
    for (const folder of waiting) attempt(folder, advance)
    if (line.size > 0 && isFull()) {
      sessions()
        .find(session => session.state() === 'idle')
        ?.close()
    }
  }
  const { kick, kickIn, ...wakeUps } = createWakeUps(check, log)
  const pause = (place: Place, ms: number) => {
    place.isPausing = true
    kickIn(ms, () => {
      place.isPausing = false
    })
  }
  const begin = createBegin(options, { kick, pause, join: folder => void line.add(folder) })

  const attempt = (folder: string, work: (place: Place) => void) => {
    const place = placeOf(folder)
    try {
      work(place)
    } catch (error) {
      log.error({ err: error, group: folder }, 'the runs of a group could not be advanced; it is tried again')
      line.add(folder)
      pause(place, afterFailureMs)
    }
  }
  const advance = (place: Place) => {
    const { folder, session } = place
    if (session) {
      if (place.jobs.length === 0) return
      line.add(folder)
      if (session.state() === 'idle') session.close()
    } else if (place.isPausing || !mayBegin(folder) || isFull()) line.add(folder)
    else if (!begin(place)) places.delete(folder)
  }
  const feed = (place: Place, session: Session) => {
    // Between two turns it is the task's turn, however much people write.
    if (place.jobs.length > 0 && session.state() === 'idle') return
    const room = session.room()
    if (room <= 0) return
    const rows = store.incoming({ group: session.group, status: 'waiting', limit: room })
    if (rows.length > 0) session.feed(rows)
  }

  const sessionOf = (folder: string, runId?: string) => {
    const session = places.get(folder)?.session
    return runId === undefined || session?.runId === runId ? session : undefined
  }
  return {
    kick,
    runTask: (occurrence, task, begin) =>
      new Promise(done => {
        if (wakeUps.isStopped()) return done(skipped('The host is stopping.'))
        placeOf(task.group).jobs.push({ occurrence, task, begin, done })
        line.add(task.group)
        const { session } = placeOf(task.group)
        if (session?.state() === 'idle') session.close()
        kick()
      }),
    runOf(folder) {
      const session = sessionOf(folder)
      if (session) return currentRun(session)
      return mayBegin(folder) ? undefined : places.get(folder)?.last
    },
    forget: folder => sessionOf(folder)?.forget(),
    finish: (folder, runId) => sessionOf(folder, runId)?.finish(),
    stopTurn: (folder, by, runId) => sessionOf(folder, runId)?.stopTurn(by) ?? false,
    close: (folder, runId) => sessionOf(folder, runId)?.close(),
    running: () =>
      sessions().map(({ runId, group, kind, state }) => ({ runId, group, kind, state: state() })),
    async stop() {
      wakeUps.stop()
      const all = sessions()
      for (const session of all) session.kill('the host is stopping')
      await Promise.all(all.map(session => session.ended))
    },
  }
}

const newPlace = (folder: string): Place => ({
  folder,
  session: undefined,
  last: undefined,
  jobs: [],
  failures: 0,
  isPausing: false,
  lastWasTask: false,
})
