// The model's port beside a container that has no program of ours inside. It says when it listens, and ends with its
// standard input: with the host, whatever ended that.
import { openModelPort } from './forward.ts'

try {
  if (!(await openModelPort(process.env))) throw new Error('the environment names no port or no socket')
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exit(1)
}
process.stdin.on('end', () => process.exit(0)).resume()
process.stdout.write('ready\n')
