import { closeSync } from 'node:fs'
import { platform } from '../base/platform.ts'

let isDone = false

/**
 * Closes what whoever started us left open, such as the 63 of `--config <(…)`. Node keeps the first sixteen descriptors,
 * and what follows them without a gap, from the programs it starts, and everything that it opens itself; bubblewrap
 * passes on whatever else it gets. An open directory of the host's would let a run reach all that lies below it.
 */
export function closeInherited(): void {
  if (isDone) return
  isDone = true
  for (const descriptor of platform.inheritable()) if (descriptor > 2) closeSync(descriptor)
}
