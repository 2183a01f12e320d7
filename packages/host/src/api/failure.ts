import { type ErrorCode, errorCodeSchema, type Refusal } from '@hatchway/protocol'
import { z } from 'zod'

/** A request that was understood and not done. On the wire: `{"error":{"code":…,"message":…}}` and a fitting status. */
export const failureAnswer = z.object({ error: z.object({ code: errorCodeSchema, message: z.string() }) })

export class ApiError extends Error {
  override name = 'ApiError'
  readonly code: ErrorCode
  /** where it is another than the code's own */
  readonly status: FailureStatus | undefined
  /** when to ask again */
  readonly retryAfterS: number | undefined

  constructor({ code, message }: Refusal, status?: FailureStatus, retryAfterS?: number) {
    super(message)
    this.code = code
    this.status = status
    this.retryAfterS = retryAfterS
  }
}

const statuses = {
  bad_name: 400,
  not_a_file: 400,
  too_large: 413,
  too_deep: 400,
  invalid_utf8: 400,
  invalid_json: 400,
  duplicate_key: 400,
  unsupported_version: 400,
  unknown_type: 400,
  invalid_field: 400,
  sender_mismatch: 403,
  unregistered_group: 403,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  bad_schedule: 422,
  wrong_state: 409,
  dirty_tree: 409,
  merge_conflict: 409,
  check_failed: 422,
  rolled_back: 409,
  too_many_waiting: 429,
  quota_exceeded: 429,
  unavailable: 501,
  expired: 504,
  denied: 403,
  cancelled: 409,
  interrupted: 503,
  service_failed: 502,
  answer_too_large: 502,
  internal: 500,
} as const satisfies Record<ErrorCode, number>

type FailureStatus = 401 | 405 | (typeof statuses)[ErrorCode]

export const statusFor = ({ code, status }: Pick<ApiError, 'code' | 'status'>): FailureStatus =>
  status ?? statuses[code]
