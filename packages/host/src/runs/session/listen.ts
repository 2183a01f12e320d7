import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RunEvent } from '@hatchway/protocol'
import { StoreFailure } from '../../base/storage-failure.ts'
import type { SandboxProcess } from '../../sandboxes/types.ts'
import type { OutletReader } from '../container-protocols/outlet.ts'
import type { OutputReader } from '../container-protocols/types.ts'

/**
 * Reads the output of a run and handles its events in order, each once. If the store cannot take one, the output is
 * paused and the same event is handled again until it can. Nothing is thrown into the streams, where it would end the
 * host.
 */
export interface Listener {
  /** the end of what it printed on standard error */
  complaints(): string
  /** after the run's end: reads what is still in the pipe, and retries what the store has not taken until `hurry` */
  finish(hurry: () => boolean): Promise<void>
}

export interface ListenerOptions {
  sandbox: SandboxProcess
  reader: OutputReader
  /** where the container puts events as files, if it does */
  outlet: OutletReader | undefined
  /** `at`: when it was said, in microseconds, where that is known */
  onEvent(event: RunEvent, at: number | undefined): void
  /** bytes that were printed, on either stream */
  onBytes(count: number): void
  /** the store did not take an event; it is tried again */
  delayed(error: unknown): void
  /** an event cannot be handled and is left out */
  failed(error: unknown): void
}

const complaintsKept = 4000
/** before the store is tried again after a failure */
export const retryMs = 1000
/** after the exit, something may still hold the pipe: how long it may be silent, and how long it may go on printing */
const quietMs = 1000
const drainMs = 5000
const readFilesMs = 200
/** Files are read in portions, so that a run that floods delays nobody else. */
const readBudgetMs = 20
const lastReadsMs = 2000

export function listenTo(options: ListenerOptions): Listener {
  const { sandbox, reader } = options
  const decoder = new StringDecoder('utf8')
  const pending: { event: RunEvent; at?: number }[] = []
  let complaints = ''
  let lastReadAt = 0
  let isOver = false
  let retry: NodeJS.Timeout | undefined

  /** whether every pending event is handled */
  const handle = (): boolean => {
    let count = 0
    try {
      for (const { event, at } of pending) {
        options.onEvent(event, at)
        count++
      }
    } catch (error) {
      if (error instanceof StoreFailure) options.delayed(error)
      else {
        count++
        options.failed(error)
      }
    }
    pending.splice(0, count)
    return pending.length === 0
  }
  const handleLater = () => {
    sandbox.stdout.pause()
    clearTimeout(retry)
    retry = setTimeout(() => {
      if (handle()) sandbox.stdout.resume()
      else handleLater()
    }, retryMs)
  }
  const onStream = (stream: Readable, take: (chunk: Buffer) => void) => {
    stream.on('data', (chunk: Buffer) => {
      options.onBytes(chunk.length)
      take(chunk)
    })
    // The end of what can be pending; how the run ended is told by its exit.
    stream.on('error', () => {})
  }

  onStream(sandbox.stdout, chunk => {
    lastReadAt = performance.now()
    for (const event of reader.read(decoder.write(chunk))) pending.push({ event })
    if (!handle()) handleLater()
  })
  onStream(sandbox.stderr, chunk => {
    complaints = (complaints + chunk.toString()).slice(-complaintsKept)
  })
  for (const name of ['end', 'close']) {
    sandbox.stdout.once(name, () => {
      isOver = true
    })
  }

  /** whether there were files */
  const readFiles = (last: boolean): boolean => {
    if (pending.length > 0) return false
    const until = performance.now() + readBudgetMs
    let found = false
    try {
      for (const { at, size, events } of options.outlet?.read(last) ?? []) {
        found = true
        options.onBytes(size)
        for (const event of events) pending.push({ event, at })
        if (!handle()) handleLater()
        if (pending.length > 0 || performance.now() > until) break
      }
    } catch (error) {
      options.failed(error)
    }
    return found
  }
  const reading = options.outlet && setInterval(readFiles, readFilesMs, false)
  const readRemainingFiles = async (hurry: () => boolean) => {
    const until = performance.now() + lastReadsMs
    while (readFiles(true) && performance.now() < until) {
      await settle(hurry)
      // Others get their turn in between.
      await sleep(0)
    }
  }

  const settle = async (hurry: () => boolean) => {
    clearTimeout(retry)
    while (!handle() && !hurry()) await sleep(retryMs)
  }
  return {
    complaints: () => complaints.trim(),
    async finish(hurry) {
      clearInterval(reading)
      await settle(hurry)
      sandbox.stdout.resume()
      const began = performance.now()
      lastReadAt = began
      const isQuiet = () =>
        performance.now() - lastReadAt > quietMs || performance.now() - began > drainMs || pending.length > 0
      while (!isOver && !isQuiet()) await sleep(5)
      await settle(hurry)
      await readRemainingFiles(hurry)
      clearTimeout(retry)
      sandbox.stdout.destroy()
      sandbox.stderr.destroy()
    },
  }
}
