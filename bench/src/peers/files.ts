import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { startChild } from '../children.ts'
import type { Absent } from '../contenders.ts'
import { type Counting, countingIn, type Method, openMailbox } from '../mailbox.ts'
import { compileNative, startNative } from './native.ts'

interface Places {
  /** above all directories, for those who watch whole trees */
  root: string
  directories: readonly string[]
  ledger?: string | undefined
  /** names: each file is remembered; count: only how many there were */
  record?: 'names' | 'count'
}

/** A way to receive files, from as many directories as there are. */
export interface FileMethod extends Method {
  receive(places: Places): Promise<Counting>
}

const fileMethod = (
  { name, how, every }: Pick<Method, 'name' | 'how' | 'every'>,
  receive: (places: Places) => Promise<Counting>,
): FileMethod => ({
  name,
  how,
  ...(every === undefined ? {} : { every }),
  receive,
  async open(base, { producer, ledger }) {
    const root = join(base, name.replaceAll(/\W+/g, '-'))
    const directories = [join(root, 'g0000', 'messages')]
    for (const directory of directories) mkdirSync(directory, { recursive: true })
    return openMailbox({
      receive: () => receive({ root, directories, ledger }),
      writer: producer,
      to: { directories },
      ledger,
    })
  },
})

/** Received by a process of the benchmark's own. */
const nodeMethod = (about: Pick<Method, 'name' | 'how' | 'every'>, process: string) =>
  fileMethod(about, places =>
    countingIn(startChild(new URL(process, import.meta.url), about.name), { ...places, every: about.every }),
  )

const pollHow = 'lists the directory again and again, reads and removes what is there'

export const secondPoller = nodeMethod(
  { name: 'one-second poller', how: pollHow, every: 1000 },
  './poll.process.ts',
)
export const halfSecondPoller = nodeMethod(
  { name: '500 ms poller', how: pollHow, every: 500 },
  './poll.process.ts',
)
export const bareWatch = nodeMethod(
  { name: 'bare fs.watch', how: 'fs.watch, and a synchronous read of the file each event names' },
  './watch.process.ts',
)
export const naiveHandler = nodeMethod(
  { name: 'naive event handler', how: 'fs.watch, and an asynchronous handler for each event' },
  './naive.process.ts',
)
export const chokidarMethod = nodeMethod(
  { name: 'chokidar', how: 'its add events, and a synchronous read of each file' },
  './chokidar.process.ts',
)

const nativeAbout = {
  name: 'C, inotify',
  how: 'one event, one read, one unlink for each file; no parser: the limit',
}

/** The program in C, compiled into `base`; `done`: where it renames files to instead of removing them. */
export const makeNative = async (base: string, done?: string): Promise<FileMethod | Absent> => {
  const compiled = await compileNative(base)
  if ('missing' in compiled) return { name: nativeAbout.name, missing: compiled.missing }
  return fileMethod(nativeAbout, places => startNative(compiled.program, { ...places, done }))
}

export const nativeMethod: Method = {
  ...nativeAbout,
  async open(base, opening) {
    const made = await makeNative(base)
    return 'missing' in made ? made : made.open(base, opening)
  },
}
