import { readEnvironment } from '../run/environment.ts'
import { checkShell } from './check.ts'

/** The program behind the shells in /opt/hatchway/bin. Not a part of the agent's one file, which takes longer to load. */
process.exit(await checkShell(process.argv.slice(2), readEnvironment()))
