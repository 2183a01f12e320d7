import type { ErrorCode } from '@hatchway/protocol'
import type * as Library from '@modelcontextprotocol/client'
import type { JSONRPCErrorResponse } from '@modelcontextprotocol/client'

/** What went wrong with a call, and what to do about it. */
export interface Failure {
  code: ErrorCode
  /** continues "The server <name> …"; agents are told */
  text: string
  /** only for people */
  detail?: string
  /** `closed`: it is over and says itself why; `lost`: it is of no use any longer */
  connection: 'kept' | 'closed' | 'lost'
  /** whether the server can have begun: `no` lets any call be made again, `perhaps` only one that may be repeated */
  begun: 'no' | 'perhaps' | 'yes'
}

/** Answers that the host gives itself in the server's place, so that only the one call fails. */
const tooLargeCode = -1_000_413
const brokenOffCode = -1_000_408

const answerTo = (id: number | string, code: number, message: string): JSONRPCErrorResponse => ({
  jsonrpc: '2.0',
  id,
  error: { code, message },
})

export const answeredTooLarge = (id: number | string) => answerTo(id, tooLargeCode, 'too large')
export const brokenOff = (id: number | string) => answerTo(id, brokenOffCode, 'broken off')

/** A conversation could not be opened, and why; continues "the server …". Agents are told no more than that. */
export class NotOpened extends Error {
  override name = 'NotOpened'
  /** only for people: its last words, or what exactly is missing */
  readonly detail: string
  /** it was understood, and said no to the greeting */
  readonly isRefusal: boolean
  constructor(message: string, detail: string, isRefusal = false) {
    super(message)
    this.detail = detail
    this.isRefusal = isRefusal
  }
}

/** The configuration asks for what is not there; no second try can mend that. */
export class Misconfigured extends NotOpened {
  constructor(detail: string) {
    super('cannot be started', detail)
  }
}

/** Thrown where an answer grows over the limit while it is read. */
export class TooLarge extends Error {
  override name = 'TooLarge'
}

/** What went wrong after the server had begun: whatever it was, the call must not pass for one that never got there. */
export class FailedUnderway extends Error {
  override name = 'FailedUnderway'
  constructor(cause: unknown) {
    super('failed after it had begun', { cause })
  }
}

const longest = 1000
/** Nothing, or not all, of what was asked has got there. */
const notReached = new Set([
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'],
  ...['EPIPE', 'ERR_STREAM_DESTROYED', 'ERR_STREAM_WRITE_AFTER_END'],
])

const tooLarge: Failure = {
  code: 'answer_too_large',
  text: 'gave an answer that is too large to be read',
  connection: 'kept',
  begun: 'yes',
}

/** In plain words, and without what a server or a proxy wrote into the body of an error page. */
export function failureOf(error: unknown, library: typeof Library): Failure {
  const failed = (text: string, rest: Partial<Failure> = {}): Failure => ({
    code: 'service_failed',
    text,
    connection: 'kept',
    begun: 'yes',
    ...rest,
  })
  if (error instanceof FailedUnderway) {
    const failure = failureOf(error.cause, library)
    return failure.begun === 'no' ? { ...failure, begun: 'perhaps' } : failure
  }
  if (causes(error).some(cause => cause instanceof TooLarge)) return tooLarge
  if (error instanceof library.ProtocolError) {
    if (error.code === tooLargeCode) return tooLarge
    if (error.code === brokenOffCode)
      return failed('broke off before its answer was whole', {
        begun: 'perhaps',
      })
    return failed(`refused: ${shortened(error.message)}`)
  }
  if (error instanceof library.SdkHttpError) return httpFailure(error.status ?? 0, error.message, failed)
  if (error instanceof library.SdkError) {
    switch (error.code) {
      case library.SdkErrorCode.ConnectionClosed:
      case library.SdkErrorCode.SendFailed:
        return failed('was gone before it answered', { connection: 'closed', begun: 'perhaps' })
      case library.SdkErrorCode.NotConnected:
        return failed('is gone', { connection: 'closed', begun: 'no' })
      case library.SdkErrorCode.RequestTimeout:
        return failed('did not answer in time and was told to stop', {
          code: 'expired',
        })
      case library.SdkErrorCode.UnsupportedResultType:
        return failed('wants to ask a person first, which a lent server cannot')
      case library.SdkErrorCode.InvalidResult:
        return failed('gave an answer that is none')
      default:
        return failed(`cannot be talked to: ${shortened(error.message)}`)
    }
  }
  const code = causes(error)
    .map(codeOf)
    .find(found => found !== undefined)
  if (code !== undefined && notReached.has(code))
    return failed(`cannot be reached (${code})`, { connection: 'lost', begun: 'no' })
  if (error instanceof TypeError && error.message === 'fetch failed')
    return failed(`cannot be talked to (${code ?? 'the connection broke'})`, {
      connection: 'lost',
      begun: 'perhaps',
    })
  const message = error instanceof Error ? error.message : String(error)
  if (message === 'Not connected') return failed('is gone', { connection: 'closed', begun: 'no' })
  return failed(`cannot be talked to: ${shortened(message)}`)
}

function httpFailure(
  status: number,
  message: string,
  failed: (text: string, rest?: Partial<Failure>) => Failure,
): Failure {
  // Without paths: a key may be in them, and whoever may look at the console reads this.
  const redirect = /Redirect (?:to|from) [^;]{1,300}/
    .exec(message)?.[0]
    .replaceAll(/(https?:\/\/)(?:[^\s/?#]*@)?([^\s/?#]+)\S*/g, '$1$2')
  if (redirect !== undefined)
    return failed('redirects to somewhere else', { connection: 'lost', detail: `${redirect}.` })
  switch (status) {
    case 401:
    case 403:
      return failed(`does not accept the host’s credentials (HTTP ${status})`, { connection: 'lost' })
    case 404:
      // It has forgotten our session, and has not even looked at what was asked.
      return failed('does not know this session any longer (HTTP 404)', { connection: 'lost', begun: 'no' })
    default:
      return failed(`answered with HTTP ${status}`)
  }
}

function causes(error: unknown): unknown[] {
  const found: unknown[] = []
  for (let at = error; at !== undefined && found.length < 5; at = at instanceof Error ? at.cause : undefined)
    found.push(at)
  return found
}

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined

/** One line for people and agents, whatever a stranger wrote. */
export const shortened = (text: string): string => {
  const line = text.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim()
  return (line.length > longest ? `${line.slice(0, longest)}…` : line).toWellFormed()
}
