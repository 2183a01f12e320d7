import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Child, endChildren, startChild } from './children.ts'
import { interleave } from './contenders.ts'
import { removeTree } from './disk.ts'
import { count, microseconds } from './format.ts'
import type { Course } from './growth.ts'
import {
  directoriesOf,
  type HatchwayOptions,
  registerWithHatchway,
  startHatchway,
  startUp,
} from './hatchway.ts'
import { latencyOf, openMailbox, pollSamples, type Receiver } from './mailbox.ts'
import { folderOf } from './messages.ts'
import { bareWatch, chokidarMethod, type FileMethod, makeNative, secondPoller } from './peers/files.ts'
import { residentMegabytes, threadSeconds } from './proc.ts'
import type { Setting } from './row.ts'

export interface GroupFigures {
  /** from the start of the process */
  readyMs: number
  megabytes: number
  /** of a core, while nothing happens */
  percent: number
  /** µs */
  latency: number
}

interface Watching {
  pid: number
  readyMs: number
  /** who receives, and where files for it go in, once how it idles is known */
  receive(): Promise<{ receiver: Receiver; directories: string[] }>
}

interface Watcher {
  name: string
  every?: number
  /** in an empty directory; resolves when it is ready */
  start(base: string, groups: number): Promise<Watching>
}

const settle = 3000
/** files go into so many groups at the most */
const sampled = 100

/** What the peers watch: both directories of each group into which files are posted. */
const peer = ({ name, every, receive }: FileMethod): Watcher => ({
  name,
  ...(every === undefined ? {} : { every }),
  async start(base, groups) {
    const messages: string[] = []
    const directories: string[] = []
    for (let group = 0; group < groups; group++) {
      for (const sub of ['messages', 'tasks']) {
        const directory = join(base, folderOf(group), sub)
        mkdirSync(directory, { recursive: true })
        directories.push(directory)
        if (sub === 'messages') messages.push(directory)
      }
    }
    const begin = performance.now()
    const receiver = await receive({ root: base, directories })
    const readyMs = performance.now() - begin
    return { pid: receiver.pid, readyMs, receive: async () => ({ receiver, directories: messages }) }
  },
})

/** As people start it; for its latency once more, by a process that can tell when a file is committed. */
const hatchway: Watcher = {
  name: 'Hatchway',
  async start(base, groups) {
    const options: HatchwayOptions = {
      data: join(base, 'data'),
      durability: 'full',
      groups,
      dialect: 'nanoclaw',
      quotas: 'default',
      record: 'names',
    }
    await registerWithHatchway(options)
    // as in the row idle: a data directory in use
    await (await startUp(options.data)).end()
    const up = await startUp(options.data)
    return {
      pid: up.pid,
      readyMs: up.readyMs,
      async receive() {
        await up.end()
        const daemon = await startHatchway(options)
        await daemon.ready()
        const { pid, committed: take, stop: end, kill } = daemon
        return {
          receiver: { pid, take, end, kill },
          directories: directoriesOf(options.data, groups, 'messages'),
        }
      },
    }
  },
}

const latencyIn = async (
  { name, every }: Watcher,
  { receive }: Watching,
  producer: Child,
  samples: number,
): Promise<number> => {
  const { receiver, directories } = await receive()
  const step = Math.max(1, Math.floor(directories.length / sampled))
  const mailbox = await openMailbox({
    receive: async () => receiver,
    writer: producer,
    to: { directories: directories.filter((_, group) => group % step === 0) },
  })
  const measured = await interleave([latencyOf(name, mailbox, every)], {
    rounds: 1,
    samples: every === undefined ? samples : pollSamples,
    say: () => {},
  })
  // before the next one is measured: whoever keeps a core busy goes first, and disturbs the others no more
  await mailbox.end()
  return measured.get(name)?.p50 ?? Number.NaN
}

interface Opened {
  watcher: Watcher
  watching: Watching
}

const measureAll = async (opened: readonly Opened[], producer: Child, seconds: number, samples: number) => {
  await sleep(settle)
  const used = ({ watching }: Opened) => threadSeconds(watching.pid)
  const before = opened.map(used)
  const begin = performance.now()
  await sleep(seconds * 1000)
  const passed = (performance.now() - begin) / 1000
  const percents = opened.map((one, index) => ((used(one) - (before[index] ?? 0)) / passed) * 100)
  const figures = new Map<string, GroupFigures>()
  for (const [index, { watcher, watching }] of opened.entries()) {
    figures.set(watcher.name, {
      readyMs: watching.readyMs,
      megabytes: residentMegabytes(watching.pid),
      percent: percents[index] ?? Number.NaN,
      latency: await latencyIn(watcher, watching, producer, samples),
    })
  }
  return figures
}

const show = ({ readyMs, megabytes, percent, latency }: GroupFigures) =>
  `up in ${count(readyMs)} ms, ${count(megabytes)} MB, ${percent.toFixed(2)} %, ${microseconds(latency)}`

/** Hatchway and its peers with more and more groups. */
export const growGroups = async ({ directory, quick, say }: Setting) => {
  const sizes = quick ? [10_000] : [1, 10, 100, 1000, 10_000]
  const base = join(directory, 'groups')
  mkdirSync(base)
  const native = await makeNative(base)
  const watchers: Watcher[] = [
    hatchway,
    peer(bareWatch),
    peer(chokidarMethod),
    ...('missing' in native ? [] : [peer(native)]),
    peer(secondPoller),
  ]
  const courses: Course<GroupFigures>[] = watchers.map(({ name }) => ({ name, steps: [] }))
  for (const groups of sizes) {
    const producer = startChild(new URL('./producer.process.ts', import.meta.url), 'producer')
    const opened: Opened[] = []
    for (const [index, watcher] of watchers.entries()) {
      const course = courses[index]
      if (course === undefined || course.ended !== undefined) continue
      try {
        const own = join(base, `${groups}-${index}`)
        mkdirSync(own)
        opened.unshift({ watcher, watching: await watcher.start(own, groups) })
      } catch (error) {
        course.ended = `cannot be started with ${count(groups)} groups: ${error instanceof Error ? error.message.split('\n', 1)[0] : error}`
        say(`${watcher.name} ${course.ended}`)
      }
    }
    const figures = await measureAll(opened, producer, quick ? 4 : 30, quick ? 30 : 100)
    for (const course of courses) {
      const found = figures.get(course.name)
      if (found === undefined) continue
      course.steps.push({ size: groups, figures: found })
      say(`${count(groups)} groups: ${course.name} ${show(found)}`)
    }
    await endChildren()
    for (const index of watchers.keys()) await removeTree(join(base, `${groups}-${index}`))
  }
  return { courses, missing: 'missing' in native ? [native.missing] : [] }
}
