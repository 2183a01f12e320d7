import { platform } from '../base/platform.ts'

/**
 * Where no cgroup can be had, a sample at every second replaces it. It is late by up to a second, which is why each
 * process has a limit of its own beside it.
 */
const everyMs = 1000

export function watchMemory(
  root: () => number | undefined,
  limitMb: number,
  exceeded: () => void,
): () => void {
  const sample = () => {
    const top = root()
    if (top === undefined) return
    const entries = platform.processes()
    const inside = new Set([top])
    // Children have higher numbers than their parents unless the numbers have wrapped; hence until nothing is added.
    for (let before = 0; before !== inside.size; ) {
      before = inside.size
      for (const entry of entries) if (inside.has(entry.parent)) inside.add(entry.pid)
    }
    let bytes = 0
    for (const pid of inside) bytes += platform.ownMemory(pid)
    if (bytes > limitMb * 1_048_576) exceeded()
  }
  const timer = setInterval(sample, everyMs)
  timer.unref()
  return () => clearInterval(timer)
}
