import { type Outcome, outcomeSchema } from '@hatchway/protocol'
import { type Connection, type Size, sizeIn } from './connection.ts'
import type { CommandRow } from './entities/command.ts'
import { type NewRequest, type RequestRow, requestSchema } from './entities/request.ts'
import { parsed, type Row, tableOf } from './table.ts'

const requestTable = tableOf('requests', requestSchema)

/** Inside one transaction. */
export interface RequestTransaction {
  insertRequest(request: NewRequest): void
  openRequestSize(folder: string): Size
  /** one that is not answered yet */
  openRequest(folder: string, requestId: string): RequestRow | undefined
  /** takes one out that is not answered yet, as it is about to become something else */
  removeRequest(seq: number, kind: RequestRow['kind']): RequestRow | undefined
  /** whether it was still open */
  answerRequest(seq: number, outcome: Outcome, at: number): boolean
}

export interface RequestStore {
  /** whatever is not placed yet, oldest first */
  unfinished(): readonly RequestRow[]
  /** somebody has to look at it before it happens, and its end is not durable yet */
  isHeld(seq: number): boolean
  /** durable before it returns: a service that must not be asked twice is about to be asked */
  begin(seqs: readonly number[]): void
  /** which of them were still open: a request is answered once */
  answer(answers: readonly { seq: number; outcome: Outcome }[], at: number): ReadonlySet<number>
  /** nothing more is to be done for them */
  placed(seqs: readonly number[]): void
  /** forgets large answers that were placed before this time; whether there may be more */
  prune(before: number): boolean
}

export interface RequestTable {
  store: RequestStore
  within: RequestTransaction
  /** the answer of a request that the journal does not hold itself */
  outcomeOf(seq: number): Outcome | null
  /** keeps a large answer that was given at once; inside a transaction that is open already */
  keepLarge(row: Pick<CommandRow, 'seq' | 'group' | 'type' | 'receivedAt'>, outcome: string): void
  forgetGroup(folder: string): void
}

/** A larger answer is not kept in the journal, which remembers a million commands. */
export const journalledBytes = 16_384
/** Of larger ones so much is kept of each group: what is read in a loop must not fill the disk within the hour. */
const largeBytes = 67_108_864
const open = "status IN ('waiting', 'running')"

export function createRequestTable({ sql, atomically }: Connection): RequestTable {
  const answerOne = (seq: number, outcome: Outcome, at: number): boolean => {
    const text = JSON.stringify(outcome)
    const { changes } = sql(
      `UPDATE requests SET status = 'answered', outcome = ?, answered_at = ? WHERE seq = ? AND ${open}`,
    ).run(text, at, seq)
    if (changes === 0) return false
    if (!outcome.ok) {
      // Whoever gets no answer is told with what the group's agent is given next.
      sql(
        'INSERT OR REPLACE INTO refusals SELECT group_folder, seq, tool, ?, ? FROM requests WHERE seq = ? AND reply IS NULL',
      ).run(outcome.error.code, outcome.error.message, seq)
    }
    if (Buffer.byteLength(text) <= journalledBytes) {
      sql('UPDATE commands SET outcome = ? WHERE seq = ?').run(text, seq)
    }
    return true
  }

  const forgetLarge = (seqs: readonly number[]) => {
    const settle = sql("UPDATE commands SET outcome = ? WHERE seq = ? AND outcome = 'null'")
    const forget = sql('DELETE FROM requests WHERE seq = ?')
    for (const seq of seqs) {
      settle.run(JSON.stringify(noLongerKept), seq)
      forget.run(seq)
    }
  }
  const seqsIn = (rows: readonly Row[]) => rows.map(({ seq }) => Number(seq))
  /** The oldest of a group's large answers go where there are too many. */
  const trim = (folder: string) =>
    forgetLarge(
      seqsIn(
        sql(
          `SELECT seq FROM (SELECT seq, sum(octet_length(outcome)) OVER (ORDER BY seq DESC) AS total FROM requests
           WHERE group_folder = ? AND status = 'placed') WHERE total > ?`,
        ).all(folder, largeBytes),
      ),
    )

  return {
    store: {
      unfinished: () =>
        sql("SELECT * FROM requests WHERE status <> 'placed' ORDER BY seq").all().map(requestTable.from),
      isHeld: seq =>
        sql(`SELECT 1 FROM requests WHERE seq = ? AND kind = 'held' AND ${open}`).get(seq) !== undefined,
      begin: seqs =>
        atomically(() => {
          const begin = sql("UPDATE requests SET status = 'running' WHERE seq = ? AND status = 'waiting'")
          for (const seq of seqs) begin.run(seq)
        }),
      answer: (answers, at) =>
        atomically(
          () =>
            new Set(answers.filter(({ seq, outcome }) => answerOne(seq, outcome, at)).map(({ seq }) => seq)),
        ),
      placed: seqs =>
        atomically(() => {
          const keep = sql(
            `UPDATE requests SET status = 'placed', input = '{}' WHERE seq = ? AND EXISTS
             (SELECT 1 FROM commands WHERE commands.seq = requests.seq AND commands.outcome = 'null')
             RETURNING group_folder`,
          )
          const forget = sql("DELETE FROM requests WHERE seq = ? AND status = 'answered'")
          const grown = new Set<string>()
          for (const seq of seqs) {
            const kept = keep.get(seq)
            if (kept) grown.add(String(kept.group_folder))
            else forget.run(seq)
          }
          for (const folder of grown) trim(folder)
        }),
      prune: before =>
        atomically(() => {
          const old = sql(
            "SELECT seq FROM requests WHERE status = 'placed' AND answered_at < ? ORDER BY seq LIMIT 200",
          ).all(before)
          forgetLarge(seqsIn(old))
          return old.length === 200
        }),
    },
    within: {
      insertRequest: request =>
        void sql(requestTable.insert).run(
          ...requestTable.values({ ...request, status: 'waiting', outcome: null }),
        ),
      openRequestSize: folder =>
        sizeIn(
          sql(
            `SELECT count(*) AS count, sum(octet_length(input)) AS bytes FROM requests
             WHERE group_folder = ? AND ${open}`,
          ).get(folder),
        ),
      openRequest: (folder, requestId) =>
        requestTable.maybe(
          sql(`SELECT * FROM requests WHERE group_folder = ? AND ${open} AND reply ->> 'id' = ?`).get(
            folder,
            requestId,
          ),
        ),
      removeRequest: (seq, kind) =>
        requestTable.maybe(
          sql(`DELETE FROM requests WHERE seq = ? AND kind = ? AND ${open} RETURNING *`).get(seq, kind),
        ),
      answerRequest: answerOne,
    },
    outcomeOf(seq) {
      const row = sql('SELECT outcome FROM requests WHERE seq = ?').get(seq)
      return row ? outcomeSchema.nullable().parse(parsed(row.outcome)) : null
    },
    keepLarge({ seq, group, type, receivedAt }, outcome) {
      sql(
        `INSERT INTO requests (seq, group_folder, kind, tool, input, status, outcome, created_at, expires_at, answered_at)
         VALUES (?, ?, 'service', ?, '{}', 'placed', ?, ?, ?, ?)`,
      ).run(seq, group, type ?? '', outcome, receivedAt, receivedAt, receivedAt)
      trim(group)
    },
    forgetGroup: folder =>
      void sql("DELETE FROM requests WHERE group_folder = ? AND status = 'placed'").run(folder),
  }
}

const noLongerKept: Outcome = {
  ok: false,
  error: {
    code: 'expired',
    message: 'The request was answered, and so large an answer is no longer kept. Ask again with a new id.',
  },
}
