import { closeSync, readdirSync, readFileSync } from 'node:fs'

const closeOnExec = 0o2000000
let isDone = false

/**
 * Closes what whoever started us left open, such as the 63 of `--config <(…)`. Node keeps the first sixteen descriptors,
 * and what follows them without a gap, from the programs it starts, and everything that it opens itself; bubblewrap
 * passes on whatever else it gets. An open directory of the host's would let a run reach all that lies below it.
 */
export function closeInherited(): void {
  if (isDone) return
  isDone = true
  for (const descriptor of readdirSync('/proc/self/fd').map(Number)) {
    const flags = descriptor > 2 ? flagsOf(descriptor) : undefined
    if (flags !== undefined && (flags & closeOnExec) === 0) closeSync(descriptor)
  }
}

function flagsOf(descriptor: number): number | undefined {
  try {
    const about = readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8')
    return Number.parseInt(/^flags:\s*(\d+)/m.exec(about)?.[1] ?? '', 8)
  } catch (error) {
    // It was the one by which the others were listed.
    if (error instanceof Error && 'code' in error) return undefined
    throw error
  }
}
