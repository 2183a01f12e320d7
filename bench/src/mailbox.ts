import type { Child } from './children.ts'
import type { Absent, Contender } from './contenders.ts'
import { readLedger } from './ledger.ts'
import { relayContender } from './peers/relay.ts'
import { idleGap } from './post.ts'
import { asBigint, asFields, asNumber } from './shape.ts'
import { asStamps, type Stamps } from './stamps.ts'

/** The process that receives, in whatever way. */
export interface Receiver {
  pid: number
  /** what has been handled since it was last asked */
  take(): Promise<Stamps>
  end(): Promise<void>
  /** SIGKILL; resolves when it is gone */
  kill(): Promise<void>
}

/** One that can say how far it is without naming everything. */
export interface Counting extends Receiver {
  /** how many it has handled, and when the last of them was */
  progress(): Promise<{ files: number; at: bigint }>
}

/** A server in between, which keeps what nobody has received yet. */
interface Server {
  pid: number
  port: number
  end(): Promise<void>
  kill(): Promise<void>
}

/** One process hands messages to another, and both are there. */
export interface Mailbox {
  /** the receiver, and after it the server, if there is one */
  pids(): number[]
  /** `count` messages with a pause before each; `even`: exactly so long */
  trickle(count: number, gap: number, even?: boolean): Promise<Stamps>
  /** `count` messages without any pause, or as many as there are within `seconds` */
  burst(count: number, seconds: number): Promise<Stamps>
  take(): Promise<Stamps>
  /** how often each message was handled: of a mailbox that was opened with a ledger, and has ended */
  handled(): Map<string, number>
  /** ends the receiving side with SIGKILL, server included, and begins it again */
  crash(): Promise<void>
  end(): Promise<void>
}

interface Opening {
  /** who writes the files, where it is files */
  producer: Child
  /** where the receiver writes down what it has handled, for when it is killed */
  ledger?: string
}

/** A way to hand over messages, as it stands in the tables. */
export interface Method {
  name: string
  how: string
  /** milliseconds between two looks, if it looks instead of being told */
  every?: number
  open(base: string, opening: Opening): Promise<Mailbox | Absent>
}

interface Parts {
  serve?: () => Promise<Server>
  receive(port: number | undefined): Promise<Receiver>
  writer: Child
  /** where the writer writes to */
  to: object
  /** ends with the mailbox */
  ownWriter?: boolean
  ledger?: string | undefined
  handled?: () => Map<string, number>
}

const patience = 300

export const openMailbox = async (parts: Parts): Promise<Mailbox> => {
  const { serve, receive, writer, to, ownWriter = false, ledger } = parts
  let server = await serve?.()
  let receiver = await receive(server?.port)
  const write = async (method: string, how: object) =>
    asStamps(await writer.call(method, { ...to, port: server?.port, ...how }, patience))
  return {
    pids: () => [receiver.pid, ...(server === undefined ? [] : [server.pid])],
    trickle: (count, gap, even = false) => write('trickle', { count, gap, even }),
    burst: (count, seconds) => write('burst', { count, seconds }),
    take: () => receiver.take(),
    handled: parts.handled ?? (() => readLedger(ledger ?? '')),
    async crash() {
      await receiver.kill()
      await server?.kill()
      server = await serve?.()
      receiver = await receive(server?.port)
    },
    async end() {
      if (ownWriter) await writer.end()
      await receiver.end()
      await server?.end()
    },
  }
}

/** A receiver that is a process of the benchmark's own. */
export const receiverIn = async (child: Child, argument: object): Promise<Receiver> => {
  await child.call('begin', argument, patience)
  return {
    pid: child.pid,
    take: async () => asStamps(await child.call('take')),
    end: child.end,
    kill: child.kill,
  }
}

export const countingIn = async (child: Child, argument: object): Promise<Counting> => ({
  ...(await receiverIn(child, argument)),
  async progress() {
    const { files, at } = asFields(await child.call('progress', undefined, patience))
    return { files: asNumber(files), at: asBigint(at) }
  },
})

/** Idle latency: from the moment a message is given away until it is handled. */
export const latencyOf = (name: string, mailbox: Mailbox, every?: number): Contender =>
  relayContender({
    name,
    // A poller gets them evenly over whole intervals, because where in its interval a message falls is all that matters.
    send: count =>
      every === undefined ? mailbox.trickle(count, idleGap) : mailbox.trickle(count, pollGap, true),
    take: mailbox.take,
    end: mailbox.end,
  })

const pollGap = 40
/** Two whole seconds, which is a whole number of every poller's intervals. */
export const pollSamples = 2000 / pollGap
