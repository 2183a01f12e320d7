import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RunEvent } from '@hatchway/protocol'
import { StoreFailure } from '../base/storage-failure.ts'
import type { SandboxProcess } from '../sandboxes/types.ts'
import type { OutletReader } from './container-protocols/outlet.ts'
import type { OutputReader } from './container-protocols/types.ts'

/**
 * Hears what a run says, in order, each thing once. If the store cannot take something, the run is kept waiting with
 * the rest of its words until it can; nothing thrown here reaches the streams, where it would end the host.
 */
export interface Listener {
  /** the end of what it printed on standard error */
  complaints(): string
  /** after its end: what is still in the pipe, and whatever the store has not taken yet, unless `hurry` says so */
  finish(hurry: () => boolean): Promise<void>
}

export interface ListenerOptions {
  sandbox: SandboxProcess
  reader: OutputReader
  /** what it says in files, if it does */
  outlet: OutletReader | undefined
  /** `at`: when it was said, in microseconds, where that is known */
  onEvent(event: RunEvent, at: number | undefined): void
  /** so much was printed, on either stream */
  onBytes(count: number): void
  /** the store did not take it; it is tried again */
  delayed(error: unknown): void
  /** it cannot be dealt with and is left out */
  failed(error: unknown): void
}

const complaintsKept = 4000
/** how long the store is left alone when it failed */
export const retryMs = 1000
/** how long more is waited for if something still holds the pipe, and how long at most if it goes on printing */
const quietMs = 1000
const drainMs = 5000
const lookMs = 200
/** Files are heard in pieces, so that a run that floods delays nobody else. */
const lookBudgetMs = 20
const lastLooksMs = 2000

export function listenTo(options: ListenerOptions): Listener {
  const { sandbox, reader } = options
  const decoder = new StringDecoder('utf8')
  const heard: { event: RunEvent; at?: number }[] = []
  let complaints = ''
  let lastHeardAt = 0
  let isOver = false
  let retry: NodeJS.Timeout | undefined

  /** whether everything heard is dealt with */
  const attend = (): boolean => {
    let count = 0
    try {
      for (const { event, at } of heard) {
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
    heard.splice(0, count)
    return heard.length === 0
  }
  const attendLater = () => {
    sandbox.stdout.pause()
    clearTimeout(retry)
    retry = setTimeout(() => {
      if (attend()) sandbox.stdout.resume()
      else attendLater()
    }, retryMs)
  }
  const onStream = (stream: Readable, take: (chunk: Buffer) => void) => {
    stream.on('data', (chunk: Buffer) => {
      options.onBytes(chunk.length)
      take(chunk)
    })
    // The end of what can be heard; how the run ended is told by its exit.
    stream.on('error', () => {})
  }

  onStream(sandbox.stdout, chunk => {
    lastHeardAt = performance.now()
    for (const event of reader.read(decoder.write(chunk))) heard.push({ event })
    if (!attend()) attendLater()
  })
  onStream(sandbox.stderr, chunk => {
    complaints = (complaints + chunk.toString()).slice(-complaintsKept)
  })
  for (const name of ['end', 'close']) {
    sandbox.stdout.once(name, () => {
      isOver = true
    })
  }

  /** whether there was something in its files */
  const look = (last: boolean): boolean => {
    if (heard.length > 0) return false
    const until = performance.now() + lookBudgetMs
    let found = false
    try {
      for (const { at, size, events } of options.outlet?.look(last) ?? []) {
        found = true
        options.onBytes(size)
        for (const event of events) heard.push({ event, at })
        if (!attend()) attendLater()
        if (heard.length > 0 || performance.now() > until) break
      }
    } catch (error) {
      options.failed(error)
    }
    return found
  }
  const looking = options.outlet && setInterval(look, lookMs, false)
  const lookAgain = async (hurry: () => boolean) => {
    const until = performance.now() + lastLooksMs
    while (look(true) && performance.now() < until) {
      await settle(hurry)
      // Others have their turn in between.
      await sleep(0)
    }
  }

  const settle = async (hurry: () => boolean) => {
    clearTimeout(retry)
    while (!attend() && !hurry()) await sleep(retryMs)
  }
  return {
    complaints: () => complaints.trim(),
    async finish(hurry) {
      clearInterval(looking)
      await settle(hurry)
      sandbox.stdout.resume()
      const began = performance.now()
      lastHeardAt = began
      const isQuiet = () =>
        performance.now() - lastHeardAt > quietMs || performance.now() - began > drainMs || heard.length > 0
      while (!isOver && !isQuiet()) await sleep(5)
      await settle(hurry)
      await lookAgain(hurry)
      clearTimeout(retry)
      sandbox.stdout.destroy()
      sandbox.stderr.destroy()
    },
  }
}
