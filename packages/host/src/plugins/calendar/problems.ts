import type { ErrorCode } from '@hatchway/protocol'
import { ServiceRefusal } from '../../services/define.ts'

/** What a calendar server did instead of what it was asked for. Nothing of its own words is passed on. */
export class ServerProblem extends ServiceRefusal {
  override name = 'ServerProblem'
  /** the HTTP status, if it came to one */
  readonly status: number | undefined
  constructor(code: ErrorCode, message: string, status?: number) {
    super(code, message)
    this.status = status
  }
}

export const hasStatus = (error: unknown, ...statuses: number[]): error is ServerProblem =>
  error instanceof ServerProblem && error.status !== undefined && statuses.includes(error.status)

export function problemOfStatus(account: string, status: number): ServerProblem {
  const problem = (code: ErrorCode, what: string) =>
    new ServerProblem(code, `${what.replaceAll('§', `the calendar account “${account}”`)}`, status)
  if (status === 401)
    return problem(
      'service_failed',
      'The calendar server refuses the user name or the password of §. The operator has to mend it; some providers want a password made for this program.',
    )
  if (status === 403) return problem('forbidden', 'The calendar server does not allow this with §.')
  if (status === 404 || status === 410)
    return problem(
      'not_found',
      'The calendar server has nothing there for §. List the calendars and events again.',
    )
  if (status === 409 || status === 412 || status === 423)
    return problem('conflict', 'It has been changed in § meanwhile. List the events again, then decide anew.')
  if (status === 413)
    return problem('service_failed', 'The event is too large for the server of §. Shorten it.')
  if (status === 429 || status === 503)
    return problem('service_failed', 'The server of § is busy or being repaired. Ask again in a few minutes.')
  if (status === 507)
    return problem('quota_exceeded', 'The server has no more room for §. Somebody has to make room there.')
  if (status >= 500)
    return problem(
      'service_failed',
      `The server of § failed (${status}). Ask again later, or tell the operator.`,
    )
  return problem('service_failed', `The server of § refused the request (${status}). Tell the operator.`)
}

const certificateCodes =
  /^(CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_(GET_ISSUER|VERIFY)|ERR_TLS_CERT|ERR_SSL|HOSTNAME_MISMATCH|INVALID_PURPOSE)/

/** What kept a request from being answered at all. */
export function problemOfFailure(account: string, error: unknown): ServerProblem {
  const code = codeOf(error)
  const of = `the calendar account “${account}”`
  if (code !== undefined && certificateCodes.test(code)) {
    return new ServerProblem(
      'service_failed',
      `The server of ${of} shows a certificate that cannot be trusted (${code}). The operator has to mend it.`,
    )
  }
  if (error instanceof Error && error.name === 'TimeoutError') {
    return new ServerProblem('service_failed', `The server of ${of} did not answer in time. Ask again later.`)
  }
  return new ServerProblem(
    'service_failed',
    `The server of ${of} cannot be reached${code === undefined ? '' : ` (${code})`}. Ask again later; if it stays so, the operator has to look at its address.`,
  )
}

/** The code of the error at the bottom: `fetch` wraps it, and again for each address it tried. */
function codeOf(error: unknown, depth = 0): string | undefined {
  if (!(error instanceof Error) || depth > 5) return undefined
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0], depth + 1)
  const deeper = codeOf(error.cause, depth + 1)
  if (deeper !== undefined) return deeper
  return 'code' in error && typeof error.code === 'string' && /^[A-Z0-9_]{1,64}$/.test(error.code)
    ? error.code
    : undefined
}
