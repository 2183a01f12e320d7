import { z } from 'zod'

const addressForm = /^[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[a-z\d-]+(?:\.[a-z\d-]+)*$/i

/** Where a server is, and whether the connection is encrypted from its first byte. */
export interface Server {
  host: string
  port: number
  isEncrypted: boolean
}

/** `mail.example.org` means the encrypted port; `mail.example.org:143` and `imap://…` mean STARTTLS. */
const serverOf = (plain: { scheme: string; port: number }, encrypted: { scheme: string; port: number }) =>
  z
    .string()
    .trim()
    .transform((given, context): Server => {
      const [, scheme, host = '', port] =
        /^(?:([a-z]+):\/\/)?([\w.-]+|\[[\da-f:]+\])(?::(\d{1,5}))?\/?$/i.exec(given) ?? []
      const isKnown = scheme === undefined || scheme === plain.scheme || scheme === encrypted.scheme
      if (host === '' || !isKnown) {
        context.addIssue({
          code: 'custom',
          message: `is not a server. Write its name, such as ${plain.scheme}.example.org, or ${encrypted.scheme}://HOST:PORT, or ${plain.scheme}://HOST:PORT for STARTTLS.`,
        })
        return z.NEVER
      }
      const isEncrypted = scheme === undefined ? Number(port) !== plain.port : scheme === encrypted.scheme
      const usual = isEncrypted ? encrypted.port : plain.port
      return {
        host: host.replace(/^\[|\]$/g, ''),
        port: port === undefined ? usual : Number(port),
        isEncrypted,
      }
    })

export const emailSettings = z.strictObject({
  address: z
    .string()
    .trim()
    .toLowerCase()
    .regex(addressForm, 'is not an e-mail address. It looks like agent@example.org.'),
  password: z.string().min(1, 'is empty'),
  imap: serverOf({ scheme: 'imap', port: 143 }, { scheme: 'imaps', port: 993 }),
  smtp: serverOf({ scheme: 'smtp', port: 587 }, { scheme: 'smtps', port: 465 }),
  /** whose word about senders counts: the first word of the Authentication-Results header that the mail server adds */
  authserv: z
    .string()
    .trim()
    .toLowerCase()
    .regex(
      /^[\w.:-]+$/,
      'is not the name of a mail server. Open the source of a mail in this mailbox and copy the first word of its topmost Authentication-Results header, such as mx.example.org.',
    ),
  /** left out: the address */
  user: z.string().trim().min(1).optional(),
  folder: z.string().min(1).default('INBOX'),
  /**
   * `required`: encrypted, with a certificate that is trusted; `unverified`: encrypted, with any certificate; `optional`:
   * encrypted where the server offers it. Left out: required, and optional for a server on this machine.
   */
  tls: z.enum(['required', 'unverified', 'optional'], 'must be required, unverified or optional').optional(),
  /** the certificate of a private authority, as PEM */
  ca: z
    .string()
    .includes('-----BEGIN CERTIFICATE-----', { message: 'is not a certificate in PEM form' })
    .optional(),
  /** seconds between two looks for mail, for servers that do not tell of it */
  poll: z.coerce.number().int().min(1).max(3600).default(60),
})
export type EmailSettings = z.output<typeof emailSettings>
