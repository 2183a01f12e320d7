import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

/** Processor time a process has used so far, its own and the kernel's for it, in seconds. */
export const processorSeconds = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // the name before the last bracket may hold spaces; utime and stime are the 12th and 13th field after it
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

/**
 * The same to the nanosecond, summed over the threads it has now: a clock tick is too coarse for what does next to
 * nothing. Only for two moments between which no thread ends.
 */
export const threadSeconds = (pid: number): number =>
  readdirSync(`/proc/${pid}/task`).reduce(
    (sum, thread) =>
      sum + Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1e9,
    0,
  )

/** Resident memory of a process, in MB. */
export const residentMegabytes = (pid: number): number => {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  if (kilobytes === undefined) throw new Error(`process ${pid} has no memory any more`)
  return (Number(kilobytes) * 1024) / 1e6
}

/** The most it has had so far, in MB. */
export const highestMegabytes = (pid: number): number => {
  const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  if (kilobytes === undefined) throw new Error(`process ${pid} has no memory any more`)
  return (Number(kilobytes) * 1024) / 1e6
}

/** Resident memory with what is shared divided among those who share it. */
export const proportionalMegabytes = (pid: number): number => {
  const kilobytes = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]
  if (kilobytes === undefined) throw new Error(`process ${pid} has no memory any more`)
  return (Number(kilobytes) * 1024) / 1e6
}

/** Every process that a process has started, and those they have. */
export const descendantsOf = (pid: number): number[] => {
  const parents = new Map<number, number>()
  for (const name of readdirSync('/proc').filter(entry => /^\d+$/.test(entry))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]))
    } catch (error) {
      // it has just ended
      if (!(error instanceof Error && 'code' in error)) throw error
    }
  }
  const found: number[] = []
  const add = (parent: number) => {
    for (const [child, of] of parents) {
      if (of !== parent) continue
      found.push(child)
      add(child)
    }
  }
  add(pid)
  return found
}
