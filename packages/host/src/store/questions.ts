import { type Outcome, outcomeSchema } from '@hatchway/protocol'
import { pruneCards } from './cards.ts'
import { type Connection, where } from './connection.ts'
import { type QuestionRow, questionSchema } from './entities/card.ts'
import type { NewIncoming } from './entities/message.ts'
import { parsed, tableOf } from './table.ts'

const questionTable = tableOf('questions', questionSchema)

export interface QuestionStore {
  question(seq: number): QuestionRow | undefined
  byMessage(messageId: number): QuestionRow | undefined
  /** the open ones of a chat, oldest first; of all chats where none is named */
  open(jid?: string): readonly QuestionRow[]
  /** what its request has come to, where that is known */
  outcome(seq: number): Outcome | null
  /**
   * Keeps its answers and its status, in one commit with the message that changed it. The message's id; undefined
   * where there is none, or where it came before and so changes nothing.
   */
  update(question: QuestionRow, said?: NewIncoming): number | undefined
}

/** Inside one transaction. */
export interface QuestionTransaction {
  insertQuestion(question: QuestionRow): void
}

export interface QuestionTable {
  store: QuestionStore
  within: QuestionTransaction
  /** forgets those whose message is forgotten */
  prune(): void
}

/** `receive` stores what people say, inside a transaction that is open already. */
export function createQuestionTable(
  { sql, atomically }: Connection,
  receive: (message: NewIncoming) => number | undefined,
): QuestionTable {
  return {
    store: {
      question: seq => questionTable.maybe(sql('SELECT * FROM questions WHERE seq = ?').get(seq)),
      byMessage: id => questionTable.maybe(sql('SELECT * FROM questions WHERE message_id = ?').get(id)),
      open(jid) {
        const { text, values } = where({ "status = 'open'": true, 'jid = ?': jid })
        return sql(`SELECT * FROM questions ${text} ORDER BY seq`)
          .all(...values)
          .map(questionTable.from)
      },
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
          const { answers, status, closedAt } = row
          const { text, values } = questionTable.set({ answers, status, closedAt })
          sql(`UPDATE questions SET ${text} WHERE seq = ?`).run(...values, row.seq)
          return id
        }),
    },
    within: {
      insertQuestion: row => void sql(questionTable.insert).run(...questionTable.values(row)),
    },
    prune: () => pruneCards({ sql }, 'questions'),
  }
}
