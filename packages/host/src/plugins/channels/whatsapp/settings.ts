import { z } from 'zod'

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
