import { outcomeSchema, payloads } from '@hatchway/protocol'
import { z } from 'zod'
import type { NewIncoming } from './agent-types.ts'
import { cardFromRow, cardSchema, pruneCards } from './cards.ts'
import type { Connection } from './connection.ts'
import { parsed, type Row } from './rows.ts'
import type { QuestionRow, QuestionStore, ServiceTransaction } from './service-types.ts'

export interface QuestionTable {
  store: QuestionStore
  within: Pick<ServiceTransaction, 'insertQuestion'>
  /** forgets those whose message is forgotten */
  prune(): void
}

/** `receive` stores what people say, inside a transaction that is open already. */
export function createQuestionTable(
  { sql, atomically }: Connection,
  receive: (message: NewIncoming) => number | undefined,
): QuestionTable {
  const one = (row: Row | undefined) => row && questionFromRow(row)
  return {
    store: {
      question: seq => one(sql('SELECT * FROM questions WHERE seq = ?').get(seq)),
      byMessage: id => one(sql('SELECT * FROM questions WHERE message_id = ?').get(id)),
      open: jid =>
        (jid === undefined
          ? sql("SELECT * FROM questions WHERE status = 'open' ORDER BY seq").all()
          : sql("SELECT * FROM questions WHERE status = 'open' AND jid = ? ORDER BY seq").all(jid)
        ).map(questionFromRow),
      outcome(seq) {
        const row = sql(
          `SELECT coalesce((SELECT outcome FROM requests WHERE seq = :seq),
           (SELECT outcome FROM commands WHERE seq = :seq)) AS outcome`,
        ).get({ seq })
        return outcomeSchema.nullable().parse(parsed(row?.outcome))
      },
      update: (row, said) =>
        atomically(() => {
          const id = said && receive(said)
          if (said && id === undefined) return undefined
          sql('UPDATE questions SET answers = ?, status = ?, closed_at = ? WHERE seq = ?').run(
            JSON.stringify(row.answers),
            row.status,
            row.closedAt,
            row.seq,
          )
          return id
        }),
    },
    within: {
      insertQuestion: row =>
        void sql('INSERT INTO questions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)').run(
          row.seq,
          row.group,
          row.jid,
          row.messageId,
          JSON.stringify(row.questions),
          JSON.stringify(row.answers),
          row.status,
          row.createdAt,
          row.expiresAt,
          row.closedAt,
        ),
    },
    prune: () => pruneCards({ sql }, 'questions'),
  }
}

const questionSchema = cardSchema.extend({
  questions: payloads.ask_user.shape.questions,
  answers: z.array(
    z.object({ answer: z.string(), option: z.number().nullable(), by: z.string() }).nullable(),
  ),
  status: z.enum(['open', 'answered', 'expired', 'withdrawn']),
})

const questionFromRow = (row: Row): QuestionRow =>
  questionSchema.parse({
    ...cardFromRow(row),
    questions: parsed(row.questions),
    answers: parsed(row.answers),
  })
