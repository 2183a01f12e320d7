import type { Contender } from '../contenders.ts'
import { gather, latencies, type Stamps } from '../stamps.ts'

interface Relay {
  name: string
  /** has `count` messages sent, with their usual pauses */
  send(count: number): Promise<Stamps>
  /** what has arrived at the other end since it was last asked */
  take(): Promise<Stamps>
  end(): Promise<void>
}

const patience = 30

/** A contender made of a sender and a receiver in processes of their own. */
export const relayContender = ({ name, send, take, end }: Relay): Contender => ({
  name,
  async block(count) {
    const sent = await send(count)
    const samples = latencies(sent, await gather(take, sent.names, patience))
    if (samples.length < sent.names.length) {
      throw new Error(`${name}: ${sent.names.length - samples.length} of ${sent.names.length} never came out`)
    }
    return samples
  },
  end,
})
