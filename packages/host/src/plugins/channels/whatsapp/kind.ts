import { z } from 'zod'
import { defineKind } from '../kind.ts'

export const whatsappSettings = z.strictObject({
  /** of the account, for pairing by a code; left out: a QR code is shown */
  phone: z
    .string()
    .transform(text => text.replace(/[\s()+./-]/g, ''))
    .pipe(
      z
        .string()
        .regex(
          /^[1-9]\d{6,14}$/,
          'is no phone number. Write it with its country code, such as +49 170 1234567.',
        ),
    )
    .optional(),
  /** somebody's own number: people who write there mean that person, and must not be answered unasked */
  own: z
    .union(
      [
        z.boolean(),
        z
          .string()
          .trim()
          .toLowerCase()
          .pipe(z.enum(['yes', 'no']))
          .transform(word => word === 'yes'),
      ],
      'is neither yes nor no.',
    )
    .default(false),
  /** where WhatsApp Web is served */
  server: z.url({ protocol: /^wss?$/ }).default('wss://web.whatsapp.com/ws/chat'),
})
export type WhatsAppSettings = z.output<typeof whatsappSettings>

export const whatsapp = defineKind({
  name: 'whatsapp',
  title: 'WhatsApp',
  settings: whatsappSettings,
  questions: [
    {
      key: 'own',
      question:
        'Is this your own number, at which people write to you? (yes or no; empty: no, it is the assistant’s)',
    },
    {
      key: 'phone',
      question: 'Phone number of the account, to type a code on its phone (empty: scan a QR code with it)',
    },
  ],
  next: [
    'On the phone of the account: Settings, Linked devices, Link a device. Scan the QR code, or choose “Link with phone number instead” and type the code.',
    'Write to the account from another phone: the chat asks to be let in. With your own number, register your chat with yourself instead (see docs/channels/whatsapp.md).',
    'Your main chat is told who asks, with a code. To let them in, write there: pair CODE FOLDER',
  ],
  does: ['quotes', 'files', 'reactions', 'edits', 'deletions', 'typing', 'absence'],
  library: ['baileys'],
  load: () => import('./channel.ts'),
})
