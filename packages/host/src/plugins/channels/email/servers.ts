import type { ImapFlow, ImapFlowError } from 'imapflow'
import type { NodemailerError, SMTPPoolOptions } from 'nodemailer'
import type { EmailSettings, Server } from './settings.ts'

/** How the two servers are connected to, and what their failures mean to people. */

export type Imapflow = typeof import('imapflow')
export type Nodemailer = typeof import('nodemailer')
export type Transport = ReturnType<typeof openTransport>

const connectMs = 30_000
/** Longer than a slow line needs between two packets. */
const silenceMs = 120_000
/** IDLE begins after this, and not between two commands. */
const idleAfterMs = 100
/** the largest mail that is read, and what is around it in an answer of the server */
const largestAnswer = 50_000_000

const isLoopback = (host: string) => /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i.test(host)

function tlsOf({ tls, ca }: EmailSettings, { host }: Server) {
  const mode = tls ?? (isLoopback(host) ? 'optional' : 'required')
  return {
    isRequired: mode !== 'optional',
    options: { rejectUnauthorized: mode === 'required', ...(ca !== undefined && { ca }) },
  }
}

export function openImap({ ImapFlow }: Pick<Imapflow, 'ImapFlow'>, settings: EmailSettings): ImapFlow {
  const { imap, address, user = address, password } = settings
  const tls = tlsOf(settings, imap)
  return new ImapFlow({
    host: imap.host,
    port: imap.port,
    secure: imap.isEncrypted,
    ...(!imap.isEncrypted && tls.isRequired && { doSTARTTLS: true }),
    tls: tls.options,
    auth: { user, pass: password },
    // The library's log has the commands in it.
    logger: false,
    disableAutoEnable: true,
    autoIdleDelay: idleAfterMs,
    connectionTimeout: connectMs,
    greetingTimeout: connectMs,
    socketTimeout: Math.max(silenceMs, 2000 * settings.poll),
    maxLiteralSize: largestAnswer,
    maxResponseSize: 2 * largestAnswer,
  })
}

export function openTransport(
  { createTransport }: Pick<Nodemailer, 'createTransport'>,
  settings: EmailSettings,
) {
  const { smtp, address, user = address, password } = settings
  const tls = tlsOf(settings, smtp)
  const options: SMTPPoolOptions & { pool: true } = {
    pool: true,
    maxConnections: 3,
    // Whether a mail has arrived before the line broke is not known: the outbox decides, and notes that it does.
    maxRequeues: 0,
    host: smtp.host,
    port: smtp.port,
    secure: smtp.isEncrypted,
    requireTLS: !smtp.isEncrypted && tls.isRequired,
    tls: tls.options,
    auth: { user, pass: password },
    connectionTimeout: connectMs,
    greetingTimeout: connectMs,
    socketTimeout: silenceMs,
    // What an agent writes must never name a file or an address to be fetched.
    disableFileAccess: true,
    disableUrlAccess: true,
  }
  return createTransport(options)
}

const isUntrusted = /SELF_SIGNED|UNABLE_TO_(?:VERIFY|GET_ISSUER)|CERT_|ALTNAME/

/** A sentence for people, without the password. */
export function explained(error: unknown, which: 'imap' | 'smtp', settings: EmailSettings): string {
  const { host, port } = settings[which]
  const place = `${host}:${port}`
  if (!(error instanceof Error)) return `${place}: ${String(error)}`
  const known: ImapFlowError & NodemailerError = error
  const said = known.responseText ?? known.response ?? known.message
  const words = (typeof said === 'string' ? said : known.message).replaceAll(settings.password, '<password>')
  if (known.authenticationFailed || known.code === 'EAUTH')
    return `${place} does not accept this user and password (${words}). Many providers want an app password, which you create in your account there.`
  const code = known.originalCode ?? known.code ?? ''
  if (isUntrusted.test(code))
    return `The certificate of ${place} is not trusted (${words}). Give the certificate of its authority as ca, or set tls to unverified if you accept any.`
  if (known.tlsFailed || code === 'ETLS')
    return `${place} offers no encryption, so the password is not sent (${words}). Use its encrypted port, or set tls to optional if the network between is yours.`
  if (known.mailboxMissing)
    return `There is no folder ${settings.folder} on ${place}. Set folder to one that is there.`
  return known.responseCode === undefined && known.responseStatus === undefined
    ? `${place} cannot be reached: ${words}`
    : `${place} says: ${words}`
}
