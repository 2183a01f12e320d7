import type { Task } from '@hatchway/protocol'
import { type Connection, where } from './connection.ts'
import type { IncomingRow, NewIncoming, NewMessage } from './entities/message.ts'
import { type RunRow, type Usage, usageSchema } from './entities/run.ts'
import type { GroupTransaction } from './groups.ts'
import { createIncomingTable, type IncomingStore } from './incoming.ts'
import { createOccurrenceTable, type OccurrenceStore, type OccurrenceTable } from './occurrences.ts'
import { createRunTables, type RunStore } from './runs.ts'
import { tableOf } from './table.ts'
import type { Threads } from './threads.ts'

const usageTable = tableOf('usage', usageSchema)
/** of a group; agents name them, and some servers answer to any name. Others are counted together. */
const modelsADay = 50

/** Inside one transaction. */
export interface SessionTransaction {
  /** the agent's own session, and what was said in the chat that no run has used; what calls the agent still waits */
  forgetSession(folder: string): void
  /** undefined: this message of this chat is known already */
  receive(message: NewIncoming): number | undefined
  /** what somebody said, by its number */
  heard(id: number): IncomingRow | undefined
  /** one that is under way counts as done; whether it was */
  finishOccurrence(id: string, result: string, at: number): boolean
  /** lets the group's agent go on with this session of its own, if the host knows of none */
  adoptSession(folder: string, sessionId: string): void
  /** whether it was under way */
  endOccurrence: OccurrenceTable['end']
}

/** What sessions, scheduler and channels keep. Each call is durable, whole or not at all. */
export interface AgentStore extends IncomingStore, RunStore, OccurrenceStore {
  /** notes that it begins and, in the same commit, what it is given */
  insertRun(run: RunRow, given?: readonly number[]): void
  /**
   * A turn has ended: what it used, its session and what it says become durable together. false, and nothing is
   * done, if the run has ended: last words of a run that was given up are not said. A run that is not
   * known is the host itself, which answers what waits.
   */
  finishTurn(turn: {
    runId: string
    group: string
    usedIds: readonly number[]
    sessionId: string | null
    /** whether the session is the group's, to go on with, or the run's own */
    keepSession: boolean
    message: NewMessage | undefined
  }): boolean

  task(id: string): Task | undefined
  /** `together`: the name under which models are counted that have the same price, once the group has named too many */
  addUsage(usage: Usage, together?: string): void
  usage(filter: { group?: string; since?: string }): readonly Usage[]
}

export interface AgentTables {
  store: AgentStore
  /** inside a transaction that is open already */
  within: SessionTransaction
  forgetGroup(folder: string): void
  /** whether there is more to forget */
  prune(
    limits: { messages: number; runs: number; usageDays: number; transcriptBytes?: number | undefined },
    atATime: number,
  ): boolean
}

/** What agents need kept, on the same connection as everything else: a turn's end and its message are one commit. */
export function createAgentTables(
  connection: Connection,
  insertMessage: (message: NewMessage) => void,
  task: AgentStore['task'],
  threads: Threads,
  groups: Pick<GroupTransaction, 'noteActivity'>,
): AgentTables {
  const { sql, atomically } = connection
  const incoming = createIncomingTable(connection, threads, groups)
  const runs = createRunTables(connection)
  const occurrences = createOccurrenceTable(connection)

  const pruneUsage = (days: number, atATime: number) =>
    Number(
      sql(
        `DELETE FROM usage WHERE (group_folder, day, model) IN (SELECT group_folder, day, model FROM usage
         WHERE day <= (SELECT date(max(day), '-' || ? || ' days') FROM usage) LIMIT ?)`,
      ).run(days, atATime).changes,
    )

  const store: AgentStore = {
    ...incoming.store,
    ...runs.store,
    ...occurrences.store,
    task,
    insertRun: (run, given = []) =>
      atomically(() => {
        runs.insertRun(run)
        threads.leave(run.group)
        incoming.markGiven(given, run.id)
      }),
    finishTurn: ({ runId, group, usedIds, sessionId, keepSession, message }) =>
      atomically(() => {
        if (runs.store.run(runId) === undefined) incoming.markGiven(usedIds, runId)
        else if (!runs.noteTurn(runId, sessionId, message?.text ?? null)) return false
        incoming.markUsed(usedIds, runId)
        if (keepSession && sessionId !== null) runs.putSession(group, sessionId)
        if (message) insertMessage(message)
        return true
      }),
    addUsage: (usage, together = '') =>
      atomically(() => {
        const named = sql(
          "SELECT count(*) AS count, max(model = ?) AS known FROM usage WHERE group_folder = ? AND day = ? AND model <> ''",
        ).get(usage.model, usage.group, usage.day)
        const model = named?.known === 1 || Number(named?.count) < modelsADay ? usage.model : together
        sql(
          `${usageTable.insert} ON CONFLICT (group_folder, day, model) DO UPDATE SET
           requests = requests + excluded.requests, input_tokens = input_tokens + excluded.input_tokens,
           output_tokens = output_tokens + excluded.output_tokens,
           cached_tokens = cached_tokens + excluded.cached_tokens`,
        ).run(...usageTable.values({ ...usage, model }))
      }),
    usage({ group, since }) {
      const { text, values } = where({ 'group_folder = ?': group, 'day >= ?': since })
      return sql(`SELECT * FROM usage ${text} ORDER BY day, group_folder, model`)
        .all(...values)
        .map(usageTable.from)
    },
  }
  return {
    store,
    within: {
      receive: incoming.insert,
      heard: incoming.heard,
      forgetSession(folder) {
        runs.forgetGroup(folder)
        incoming.forgetContext(folder)
      },
      adoptSession: (folder, sessionId) =>
        void sql(
          'INSERT INTO sessions SELECT folder, ? FROM groups WHERE folder = ? ON CONFLICT (group_folder) DO NOTHING',
        ).run(sessionId, folder),
      finishOccurrence: (id, result, at) =>
        occurrences.end(id, { status: 'done', result, error: null, endedAt: at }),
      endOccurrence: occurrences.end,
    },
    forgetGroup(folder) {
      incoming.forgetGroup(folder)
      runs.forgetGroup(folder)
    },
    prune: (limits, atATime) =>
      [
        incoming.prune(limits.messages, atATime),
        runs.prune(limits.runs, atATime, limits.transcriptBytes),
        occurrences.prune(limits.runs, atATime),
        pruneUsage(limits.usageDays, atATime),
      ].includes(atATime),
  }
}
