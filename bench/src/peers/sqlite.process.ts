import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { messageBody } from '../messages.ts'
import { receiving } from '../receiving.ts'
import { serve } from '../serve.ts'
import { asFields, asNumber, asText } from '../shape.ts'
import { writing } from '../writing.ts'

/**
 * A SQLite file as the mailbox of a session: the agent writes rows into one, the host looks for new ones again and
 * again and notes in another how far it is. With a rollback journal, since a WAL does not reach through every mount.
 */
const patience = 10_000
const atOnce = 100

const openDatabase = (directory: string, name: string, table: string) => {
  const database = new DatabaseSync(join(directory, name), { timeout: patience })
  database.exec(`PRAGMA journal_mode = DELETE; CREATE TABLE IF NOT EXISTS ${table}`)
  return database
}
const openOutbound = (directory: string) =>
  openDatabase(directory, 'outbound.db', 'messages (seq INTEGER PRIMARY KEY, content TEXT NOT NULL)')

const { open, handled, methods } = receiving()
const written = new Map<string, DatabaseSync>()

serve({
  begin(argument) {
    const fields = asFields(argument)
    const directory = asText(fields.directory)
    const interval = asNumber(fields.every)
    open(fields)
    const outbound = openOutbound(directory)
    const inbound = openDatabase(directory, 'inbound.db', 'delivered (seq INTEGER PRIMARY KEY)')
    const select = outbound.prepare(
      `SELECT seq, content FROM messages WHERE seq > ? ORDER BY seq LIMIT ${atOnce}`,
    )
    const insert = inbound.prepare('INSERT INTO delivered VALUES (?)')
    let last = asNumber(inbound.prepare('SELECT ifnull(max(seq), 0) AS last FROM delivered').get()?.last)
    const look = () => {
      for (let rows = select.all(last); rows.length > 0; rows = select.all(last)) {
        inbound.exec('BEGIN')
        for (const { seq, content } of rows) {
          JSON.parse(asText(content))
          last = asNumber(seq)
          handled(String(last))
          insert.run(last)
        }
        inbound.exec('COMMIT')
      }
      setTimeout(look, interval)
    }
    setImmediate(look)
  },
  ...methods,

  ...writing(to => {
    const directory = asText(to.directory)
    const database = written.get(directory) ?? openOutbound(directory)
    written.set(directory, database)
    const insert = database.prepare('INSERT INTO messages (content) VALUES (?)')
    return () => {
      const body = messageBody(0, new Date())
      const at = process.hrtime.bigint()
      return { name: String(insert.run(body).lastInsertRowid), at }
    }
  }),
})
