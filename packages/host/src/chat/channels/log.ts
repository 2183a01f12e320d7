import type { Logger } from 'pino'
import type { Channel } from './types.ts'

/** Every chat that no other channel reaches: the message is written to the log. */
export const createLogChannel = (log: Logger): Channel => ({
  name: 'log',
  messageLimit: Number.POSITIVE_INFINITY,
  showsSender: true,
  // The browser and the terminal are where these chats are read.
  showsCards: true,
  reaches: () => true,
  async send(message) {
    log.info(
      {
        group: message.group,
        jid: message.jid,
        sender: message.sender,
        text: message.text,
        ...(message.attachments && { files: message.attachments.map(({ name }) => name) }),
      },
      'message',
    )
  },
})
