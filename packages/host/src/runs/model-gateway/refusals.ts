import type { ServerResponse } from 'node:http'
import type { Refusal } from './request.ts'

export const tooLarge: Refusal = {
  status: 413,
  type: 'request_too_large',
  message: 'The request is larger than the host forwards.',
}
export const noRoom: Refusal = {
  status: 429,
  type: 'rate_limit_error',
  message: 'The requests of this run that are under way are too large together.',
}
export const tooMany: Refusal = {
  status: 429,
  type: 'rate_limit_error',
  message: 'Too many requests of this run are under way.',
}
export const brokenOff: Refusal = {
  status: 400,
  type: 'invalid_request_error',
  message: 'The request ended in the middle.',
}
export const oldVersion: Refusal = {
  status: 505,
  type: 'invalid_request_error',
  message: 'Only HTTP/1.1 is spoken here.',
}
export const expectation: Refusal = {
  status: 417,
  type: 'invalid_request_error',
  message: 'Send the request without Expect.',
}
/** No client tries again after this; after 401, 429 and 502 some do, for minutes. The gateway has tried again already. */
const final = { status: 400, type: 'invalid_request_error' }
export const unreachable: Refusal = { ...final, message: 'The host could not reach the model API.' }
export const rateLimited: Refusal = { ...final, message: 'The rate limit of the model API is reached.' }
export const failing: Refusal = { ...final, message: 'The model API answered with errors of its own.' }
export const noCredit: Refusal = { ...final, message: 'The account at the model API has no credit left.' }
export const limitReached: Refusal = { ...final, message: 'The limit for the use of the model is reached.' }
export const keyRefused: Refusal = { ...final, message: 'The model API refuses the host’s key.' }

export function refuse(response: ServerResponse, { status, type, message }: Refusal): void {
  if (response.destroyed) return
  // The rest of what it wanted to send is not read.
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close' })
  response.end(JSON.stringify({ type: 'error', error: { type, message } }))
}
