import { z } from 'zod'
import { commandTool } from '../command-tool.ts'

export const sendMessage = commandTool({
  name: 'send_message',
  command: 'send_message',
  title: 'Send a message',
  description:
    'Says something in this group’s chat at once, while you are still working: progress, or one of several messages. ' +
    'What you answer at the end of your turn is sent by itself and needs no tool. The result says `queued` once the ' +
    'host has stored the message and will deliver it.',
  input: z.strictObject({
    text: z.string().describe('What to say.'),
    sender: z
      .string()
      .optional()
      .describe('The name to speak under, such as a role of yours: 1 to 128 characters. Left out: your own.'),
    reply_to: z
      .string()
      .optional()
      .describe(
        'The id of the <message> that this answers: apps that can show it as quoted. Leave it out unless it is not clear ' +
          'what you answer.',
      ),
    attachments: z
      .array(z.string())
      .min(1)
      .max(10)
      .optional()
      .describe(
        'Files to send along, by their paths in this group’s folder: relative to it, or absolute. The host copies them ' +
          'before it answers, so finish writing them first. Pictures (PNG, JPEG, GIF, WebP) are shown, other files are ' +
          'offered for download. No links, and no files from elsewhere: copy them into the folder first.',
      ),
  }),
  output: z.object({ request_id: z.string(), message_id: z.string(), status: z.string() }),
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
  payload: ({ text, sender, reply_to, attachments }) => ({
    text,
    sender,
    reply_to,
    attachments: attachments?.map(path => ({ path })),
  }),
  result: z.object({ message_id: z.string(), status: z.string() }),
  render: ({ message_id, status }, { id }) => ({
    facts: { request_id: id, message_id, status },
    sentence: `Message ${message_id} is ${status}.`,
  }),
})
