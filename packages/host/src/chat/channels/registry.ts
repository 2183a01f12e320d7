import type { Logger } from 'pino'
import type { Channel, ChannelHost } from './types.ts'

/** The channels there are. Some are there from the start; others come and go while the host runs. */
export interface Channels {
  /** the first that reaches a chat has it */
  all(): readonly Channel[]
  of(jid: string): Channel | undefined
  /** connects it, if the host is ready for what people say; the result takes it away again */
  attach(channel: Channel): Promise<() => Promise<void>>
  /** what people say is received from now on */
  connect(hostFor: (channel: Channel) => ChannelHost): Promise<void>
  disconnect(): Promise<void>
}

export function createChannels(options: { log: Logger }): Channels {
  const channels: Channel[] = []
  let hostFor: ((channel: Channel) => ChannelHost) | undefined

  /** One that fails must not keep the others from what is said. */
  const connect = async (channel: Channel) => {
    try {
      if (hostFor) await channel.connect?.(hostFor(channel))
    } catch (error) {
      options.log.error({ err: error, channel: channel.name }, 'a channel could not be connected')
    }
  }
  const disconnect = async (channel: Channel) => {
    try {
      await channel.disconnect?.()
    } catch (error) {
      options.log.warn({ err: error, channel: channel.name }, 'a channel could not be disconnected properly')
    }
  }

  return {
    all: () => channels,
    of: jid => channels.find(channel => channel.reaches(jid)),
    async attach(channel) {
      // Whatever came later is asked earlier: what a person added has the chat, not the log that has all of them.
      channels.unshift(channel)
      await connect(channel)
      return async () => {
        const at = channels.indexOf(channel)
        if (at < 0) return
        channels.splice(at, 1)
        await disconnect(channel)
      }
    },
    async connect(given) {
      hostFor = given
      for (const channel of [...channels]) await connect(channel)
    },
    async disconnect() {
      hostFor = undefined
      for (const channel of channels) await disconnect(channel)
    },
  }
}
