import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { endChildren, startChild } from './children.ts'
import { removeTree, syncDisk } from './disk.ts'
import { count, perSecond } from './format.ts'
import type { Course } from './growth.ts'
import { directoriesOf, type HatchwayOptions, registerWithHatchway, startHatchway } from './hatchway.ts'
import type { Counting } from './mailbox.ts'
import { chokidarMethod, type FileMethod, makeNative, secondPoller } from './peers/files.ts'
import { drainInLoop, loopName } from './peers/loop.ts'
import { highestMegabytes } from './proc.ts'
import type { Setting } from './row.ts'

export interface FileFigures {
  /** from the start of the process until the last file is handled */
  seconds: number
  perSecond: number
  /** the most memory it had */
  megabytes: number
}

const groups = 100
const patience = 900
/** one that would take longer for a backlog gets no further */
const mostSeconds = 240

interface Drainer {
  name: string
  /** makes what has to be there before files lie in it */
  prepare?(data: string): Promise<void>
  drain(data: string, files: number): Promise<{ begun: bigint; at: bigint; megabytes: number } | 'too slow'>
}

/** Asked ten times a second, which costs the fastest of them less than a hundredth. */
const untilDone = async ({ pid, progress, kill, end }: Counting, files: number, begun: bigint) => {
  for (;;) {
    await sleep(100)
    const done = await progress()
    if (done.files >= files) {
      const megabytes = highestMegabytes(pid)
      await end()
      return { begun, at: done.at, megabytes }
    }
    if (Number(process.hrtime.bigint() - begun) / 1e9 > mostSeconds) {
      await kill()
      return 'too slow' as const
    }
  }
}

const hatchway: Drainer = {
  name: 'Hatchway',
  prepare: data => registerWithHatchway(optionsOf(data)),
  async drain(data, files) {
    const begun = process.hrtime.bigint()
    const daemon = await startHatchway(optionsOf(data))
    const { pid, committed: take, stop: end, kill, progress } = daemon
    return untilDone({ pid, take, end, kill, progress }, files, begun)
  },
}

const optionsOf = (data: string): HatchwayOptions => ({
  data,
  durability: 'full',
  groups,
  dialect: 'nanoclaw',
  quotas: 'default',
  record: 'count',
})

const peer = ({ name, receive }: FileMethod, doneIn?: string): Drainer => ({
  name,
  async drain(data, files) {
    if (doneIn !== undefined) mkdirSync(doneIn, { recursive: true })
    const begun = process.hrtime.bigint()
    const directories = directoriesOf(data, groups, 'messages')
    const receiver = await receive({ root: join(data, 'ipc'), directories, record: 'count' })
    return untilDone(receiver, files, begun)
  },
})

const loop: Drainer = {
  name: loopName,
  async drain(data) {
    const begun = process.hrtime.bigint()
    return { begun, ...(await drainInLoop(directoriesOf(data, groups, 'messages'), data)) }
  },
}

/** Two write at once: a million files take their time. */
const fill = async (data: string, files: number) => {
  const directories = directoriesOf(data, groups, 'messages')
  const producers = [1, 2].map(number => ({
    number,
    child: startChild(new URL('./producer.process.ts', import.meta.url), `producer ${number}`),
  }))
  for (const { number, child } of producers) await child.call('number', number)
  await Promise.all(
    producers.map(({ child }) =>
      child.call('fill', { directories, count: files / producers.length }, patience),
    ),
  )
  for (const { child } of producers) await child.end()
  await syncDisk()
}

/** Hatchway and its peers with more and more files that wait for them, over 100 groups. */
export const growFiles = async ({ directory, quick, say }: Setting) => {
  const sizes = quick ? [100_000] : [1000, 10_000, 100_000, 1_000_000]
  const base = join(directory, 'files')
  mkdirSync(base)
  const data = join(base, 'data')
  const done = join(data, 'done')
  const native = await makeNative(base, done)
  const drainers: Drainer[] = [
    hatchway,
    peer(chokidarMethod),
    ...('missing' in native ? [] : [peer(native, done)]),
    peer(secondPoller),
    loop,
  ]
  const courses: Course<FileFigures>[] = drainers.map(({ name }) => ({ name, steps: [] }))
  for (const [place, files] of sizes.entries()) {
    for (const [index, { name, prepare, drain }] of drainers.entries()) {
      const course = courses[index]
      if (course === undefined || course.ended !== undefined) continue
      const longer = files / (sizes[place - 1] ?? files)
      if ((course.steps.at(-1)?.figures.seconds ?? 0) * longer > mostSeconds) {
        course.ended = `would take longer than ${mostSeconds} s for ${count(files)} files`
        say(`${name} ${course.ended}`)
        continue
      }
      await prepare?.(data)
      await fill(data, files)
      const result = await drain(data, files)
      if (result === 'too slow') {
        course.ended = `took longer than ${mostSeconds} s for ${count(files)} files`
        say(`${name} ${course.ended}`)
      } else {
        const seconds = Number(result.at - result.begun) / 1e9
        const figures = { seconds, perSecond: files / seconds, megabytes: result.megabytes }
        course.steps.push({ size: files, figures })
        say(
          `${count(files)} files: ${name} ${perSecond(figures.perSecond)}, ${count(figures.megabytes)} MB at the most`,
        )
      }
      await endChildren()
      await removeTree(data)
    }
  }
  return { courses, missing: 'missing' in native ? [native.missing] : [] }
}
