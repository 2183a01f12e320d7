import type { ChatEventAnswer, Client } from '@hatchway/host/api'

const pauseMs = 100

/**
 * What happens in the chats, for as long as a daemon runs. A reader that is far behind is sent away by it, and comes
 * back: the daemon then says hello once more, and what was missed has to be read.
 */
export async function followChats(
  client: Client,
  api: Pick<typeof import('@hatchway/host/api'), 'DaemonGone'>,
  onEvent: (event: ChatEventAnswer) => void | Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  await client.chatEvents('/api/events', onEvent, signal)
  while (client.daemon && !signal.aborted) {
    await new Promise(resolve => void setTimeout(resolve, pauseMs))
    try {
      await client.chatEvents('/api/events', onEvent, signal)
    } catch (error) {
      if (error instanceof api.DaemonGone) return
      throw error
    }
  }
}
