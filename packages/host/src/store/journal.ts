import type { CommandType } from '@hatchway/protocol'
import { type Connection, where } from './connection.ts'
import { type CommandRow, commandSchema } from './entities/command.ts'
import { journalledBytes, type RequestTable } from './requests.ts'
import { tableOf } from './table.ts'

const commandTable = tableOf('commands', commandSchema)
const plainTable = tableOf('commands', commandSchema.omit({ outcome: true }))
const insert = `INSERT INTO commands (outcome, ${plainTable.columns}) VALUES (?, ${plainTable.places})`
export const commandFromRow = commandTable.from

/** Inside one transaction. */
export interface JournalTransaction {
  answered(group: string, requestId: string): CommandRow | undefined
  handled(seq: number): CommandRow | undefined
  insertCommand(row: CommandRow): void
}

interface CommandFilter {
  group?: string
  type?: CommandType | string
  /** `open`: accepted, and the journal has no answer */
  ok?: boolean | 'open'
  /** only rows with a larger seq */
  after?: number
  /** only rows with a smaller seq */
  before?: number
  limit: number
}

export interface JournalStore {
  /** the newest that match, oldest first */
  commands(filter: CommandFilter): readonly CommandRow[]
  /** with its answer, also where that is too large for the journal */
  command(seq: number): CommandRow | undefined
  /** forgets that a request id was answered, so that an operator can have the file handled again */
  forgetRequest(seq: number): void
  lastSeq(): number
}

export function createJournal({ sql }: Connection, requests: Pick<RequestTable, 'outcomeOf' | 'keepLarge'>) {
  /** Large answers are not in the journal itself. */
  const withAnswer = (row: CommandRow | undefined): CommandRow | undefined =>
    row?.outcome === null ? { ...row, outcome: requests.outcomeOf(row.seq) } : row
  const handled = (seq: number) =>
    withAnswer(commandTable.maybe(sql('SELECT * FROM commands WHERE seq = ?').get(seq)))
  const lastSeq = () => Number(sql('SELECT max(seq) AS seq FROM commands').get()?.seq ?? 0)

  const within: JournalTransaction = {
    handled,
    answered: (group, requestId) =>
      withAnswer(
        commandTable.maybe(
          sql('SELECT * FROM commands WHERE group_folder = ? AND request_id = ?').get(group, requestId),
        ),
      ),
    insertCommand(row) {
      const outcome = JSON.stringify(row.outcome)
      const isLarge = outcome.length > journalledBytes
      sql(insert).run(isLarge ? 'null' : outcome, ...plainTable.values(row))
      if (isLarge) requests.keepLarge(row, outcome)
    },
  }
  const store: JournalStore = {
    command: handled,
    commands({ group, type, ok, after, before, limit }) {
      const { text, values } = where({
        'seq > ?': after,
        'seq < ?': before,
        'group_folder = ?': group,
        'type = ?': type,
        "outcome = 'null'": ok === 'open' || undefined,
        "outcome ->> 'ok' = ?": typeof ok === 'boolean' ? Number(ok) : undefined,
      })
      return sql(`SELECT * FROM (SELECT * FROM commands ${text} ORDER BY seq DESC LIMIT ?) ORDER BY seq`)
        .all(...values, limit)
        .map(commandTable.from)
    },
    forgetRequest: seq => void sql('UPDATE commands SET request_id = NULL WHERE seq = ?').run(seq),
    lastSeq,
  }
  /** Numbers are given in order and hardly any is left out, so the newest one tells where the oldest kept one is. */
  const prune = (keep: number, atATime: number): boolean =>
    sql('DELETE FROM commands WHERE seq IN (SELECT seq FROM commands WHERE seq <= ? LIMIT ?)').run(
      lastSeq() - keep,
      atATime,
    ).changes === atATime
  return { store, within, prune }
}
