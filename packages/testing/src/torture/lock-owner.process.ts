// Somebody else who has a database open: takes a lock, says so, and gives it back after a while.
// Arguments: the file, IMMEDIATE or EXCLUSIVE, how many milliseconds.
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'

const [file = '', how = '', ms = '0'] = process.argv.slice(2)
const database = new DatabaseSync(file, { timeout: 0 })
try {
  database.exec(how === 'EXCLUSIVE' ? 'BEGIN EXCLUSIVE' : 'BEGIN IMMEDIATE')
  console.log('locked')
  await sleep(Number(ms))
  database.exec('ROLLBACK')
} catch (error) {
  console.log(error instanceof Error && 'errcode' in error && error.errcode === 5 ? 'busy' : String(error))
}
database.close()
