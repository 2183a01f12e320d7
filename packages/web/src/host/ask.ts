/** Every request to the host goes through here: changes carry the sign that they come from this page. */
export class HostError extends Error {
  override name = 'HostError'
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

let csrf = ''
export const setCsrf = (given: string): void => {
  csrf = given
}
export const csrfHeader = (): Record<string, string> => (csrf === '' ? {} : { 'x-hatchway-csrf': csrf })

let noteSignedOut = (): void => {}
/** Told when the host no longer knows this browser. */
export const onSignedOut = (heard: () => void): void => {
  noteSignedOut = heard
}

export async function ask<T>(path: string, init?: RequestInit): Promise<T> {
  const response = await fetch(path, init)
  const answer: unknown = await response.json().catch(() => undefined)
  if (response.ok) return answer as T
  const failure = failureOf(response.status, answer)
  if (response.status === 401) noteSignedOut()
  throw failure
}

export const change = <T = unknown>(method: 'POST' | 'PATCH' | 'DELETE', path: string, body: object = {}) =>
  ask<T>(path, {
    method,
    headers: { 'content-type': 'application/json', ...csrfHeader() },
    body: JSON.stringify(body),
  })

export function failureOf(status: number, answer: unknown): HostError {
  if (typeof answer === 'object' && answer !== null && 'error' in answer) {
    const { error } = answer
    if (typeof error === 'object' && error !== null && 'message' in error && 'code' in error) {
      return new HostError(status, String(error.code), String(error.message))
    }
  }
  return new HostError(status, 'internal', `The host answered ${status}.`)
}

export const messageOf = (error: unknown): string =>
  error instanceof HostError
    ? error.message
    : error instanceof TypeError
      ? 'The host cannot be reached. Is the daemon running?'
      : error instanceof Error
        ? error.message
        : 'It did not work.'

/** /api/host/commands?group=main, without what is not given */
export function pathOf(path: string, query: Record<string, string | number | undefined | null> = {}): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === null || value === '' ? [] : [[name, String(value)]],
  )
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}
