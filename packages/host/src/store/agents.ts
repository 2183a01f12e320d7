import { usageFromRow } from './agent-rows.ts'
import type { AgentStore, SessionTransaction } from './agent-types.ts'
import { createIncomingTable } from './agents/incoming.ts'
import { createOccurrenceTable } from './agents/occurrences.ts'
import { createRunTables } from './agents/runs.ts'
import { type Connection, where } from './connection.ts'
import type { NewMessage } from './types.ts'

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
): AgentTables {
  const { sql, atomically } = connection
  const {
    insert,
    markGiven,
    markUsed,
    forgetContext,
    forgetGroup: forgetIncoming,
    prune: pruneIncoming,
    ...incoming
  } = createIncomingTable(connection)
  const {
    insertRun,
    noteTurn,
    putSession,
    forgetGroup: forgetSession,
    prune: pruneRuns,
    ...runs
  } = createRunTables(connection)
  const { prune: pruneOccurrences, end: endOccurrence, ...occurrences } = createOccurrenceTable(connection)

  const pruneUsage = (days: number, atATime: number) =>
    Number(
      sql(
        `DELETE FROM usage WHERE (group_folder, day, model) IN (SELECT group_folder, day, model FROM usage
         WHERE day <= (SELECT date(max(day), '-' || ? || ' days') FROM usage) LIMIT ?)`,
      ).run(days, atATime).changes,
    )

  return {
    store: {
      ...incoming,
      ...runs,
      ...occurrences,
      insertRun: (run, given = []) =>
        atomically(() => {
          insertRun(run)
          markGiven(given, run.id)
        }),
      finishTurn: ({ runId, group, usedIds, sessionId, keepSession, message }) =>
        atomically(() => {
          if (runs.run(runId) === undefined) markGiven(usedIds, runId)
          else if (!noteTurn(runId, sessionId, message?.text ?? null)) return false
          markUsed(usedIds, runId)
          if (keepSession && sessionId !== null) putSession(group, sessionId)
          if (message) insertMessage(message)
          return true
        }),
      addUsage: ({ group, day, model, requests, inputTokens, outputTokens }) =>
        atomically(
          () =>
            void sql(
              `INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (group_folder, day, model) DO UPDATE SET
               requests = requests + excluded.requests, input_tokens = input_tokens + excluded.input_tokens,
               output_tokens = output_tokens + excluded.output_tokens`,
            ).run(group, day, model, requests, inputTokens, outputTokens),
        ),
      usage({ group, since }) {
        const { text, values } = where({ 'group_folder = ?': group, 'day >= ?': since })
        return sql(`SELECT * FROM usage ${text} ORDER BY day, group_folder, model`)
          .all(...values)
          .map(usageFromRow)
      },
    },
    within: {
      receive: insert,
      forgetSession(folder) {
        forgetSession(folder)
        forgetContext(folder)
      },
      finishOccurrence: (id, result, at) =>
        endOccurrence(id, { status: 'done', result, error: null, endedAt: at }),
    },
    forgetGroup(folder) {
      forgetIncoming(folder)
      forgetSession(folder)
    },
    prune: (limits, atATime) =>
      [
        pruneIncoming(limits.messages, atATime),
        pruneRuns(limits.runs, atATime, limits.transcriptBytes),
        pruneOccurrences(limits.runs, atATime),
        pruneUsage(limits.usageDays, atATime),
      ].includes(atATime),
  }
}
