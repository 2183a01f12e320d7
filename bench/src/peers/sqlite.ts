import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { startChild } from '../children.ts'
import { type Method, openMailbox, receiverIn } from '../mailbox.ts'

/** The newer NanoClaw's way: a SQLite file per session, looked at again and again. */
const sqliteMethod = (name: string, every: number): Method => ({
  name,
  how: 'a row in a SQLite file (rollback journal, synced), looked for again and again',
  every,
  async open(base, { ledger }) {
    const directory = join(base, name.replaceAll(/\W+/g, '-'))
    mkdirSync(directory)
    const file = new URL('./sqlite.process.ts', import.meta.url)
    return openMailbox({
      receive: () => receiverIn(startChild(file, name), { directory, every, ledger }),
      writer: startChild(file, `${name}: writer`),
      ownWriter: true,
      to: { directory },
      ledger,
    })
  },
})

export const sqliteSecond = sqliteMethod('SQLite polled every second', 1000)
export const sqliteTenth = sqliteMethod('SQLite polled every 100 ms', 100)
