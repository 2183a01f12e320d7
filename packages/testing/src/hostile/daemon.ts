import { loadConfig, startDaemon } from '../../../host/src/index.ts'
import { switchUser } from './switch-user.ts'

/**
 * The daemon under an ordinary user, started by root: everything it consists of is loaded first, since that user may
 * not be allowed to read a clone below somebody's home. `launch` puts this in front of the usual command line, of
 * which only the data directory is of interest:
 *
 *   node daemon.ts UID … --data DIR
 */
const [user = ''] = process.argv.slice(2)
const data = process.argv.at(-1) ?? ''
process.chdir(data)
switchUser(Number(user))

const daemon = await startDaemon(await loadConfig({ data }))
process.once('SIGTERM', () => void daemon.stop().then(() => process.exit(0)))
// A test that was cut short cannot end it.
const starter = process.ppid
setInterval(() => {
  if (process.ppid !== starter) process.exit(1)
}, 1000).unref()
console.error('ready')
