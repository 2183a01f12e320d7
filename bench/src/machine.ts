import { cpus, release } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { filesystemOf } from './disk.ts'

export const describeMachine = (directory: string) => ({
  processor: cpus()[0]?.model ?? 'unknown',
  cores: cpus().length,
  kernel: release(),
  node: process.version,
  filesystem: filesystemOf(directory),
})

const ticks = () =>
  cpus().reduce(
    (sum, { times }) => ({
      idle: sum.idle + times.idle,
      all: sum.all + times.idle + times.user + times.nice + times.sys + times.irq,
    }),
    { idle: 0, all: 0 },
  )

/** How much of the machine others use while the benchmark does nothing, from 0 to 1. */
export const shareInUse = async (): Promise<number> => {
  const before = ticks()
  await sleep(1000)
  const after = ticks()
  const all = after.all - before.all
  return all === 0 ? 0 : 1 - (after.idle - before.idle) / all
}

/** From here on latencies are those of the neighbour: one busy core of two made a receipt five times as slow. */
export const quietEnough = 0.1
