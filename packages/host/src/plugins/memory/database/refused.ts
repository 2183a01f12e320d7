import type { ErrorCode } from '@hatchway/protocol'

/** A clear no, with a code of the protocol and what to do about it. */
export class Refused extends Error {
  override name = 'Refused'
  readonly code: ErrorCode
  constructor(code: ErrorCode, message: string) {
    super(message)
    this.code = code
  }
}
