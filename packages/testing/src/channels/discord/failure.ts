/** What the HTTP API answers instead of a result: https://docs.discord.com/developers/reference#error-messages */
export class ApiFailure extends Error {
  readonly status: number
  readonly code: number
  readonly limit: { retryAfter: number; isGlobal: boolean } | undefined
  constructor(status: number, code: number, message: string, limit?: ApiFailure['limit']) {
    super(message)
    this.status = status
    this.code = code
    this.limit = limit
  }
}

/** Refusals of https://docs.discord.com/developers/topics/opcodes-and-status-codes#json, in the words of the service. */
export const failures = {
  unauthorized: () => new ApiFailure(401, 0, '401: Unauthorized'),
  unknownChannel: () => new ApiFailure(404, 10003, 'Unknown Channel'),
  unknownMessage: () => new ApiFailure(404, 10008, 'Unknown Message'),
  unknownUser: () => new ApiFailure(404, 10013, 'Unknown User'),
  unknownEmoji: () => new ApiFailure(400, 10014, 'Unknown Emoji'),
  unknownWebhook: () => new ApiFailure(404, 10015, 'Unknown Webhook'),
  unknownInteraction: () => new ApiFailure(404, 10062, 'Unknown interaction'),
  tooLarge: () => new ApiFailure(413, 40005, 'Request entity too large'),
  acknowledged: () => new ApiFailure(400, 40060, 'Interaction has already been acknowledged.'),
  missingAccess: () => new ApiFailure(403, 50001, 'Missing Access'),
  anothersMessage: () => new ApiFailure(403, 50005, 'Cannot edit a message authored by another user'),
  empty: () => new ApiFailure(400, 50006, 'Cannot send an empty message'),
  missingPermissions: () => new ApiFailure(403, 50013, 'Missing Permissions'),
  invalid: (what: string) => new ApiFailure(400, 50035, `Invalid Form Body: ${what}`),
  lockedThread: () => new ApiFailure(400, 160005, 'Thread is locked'),
  limited: (retryAfter: number, isGlobal = false) =>
    new ApiFailure(429, 0, 'You are being rate limited.', { retryAfter, isGlobal }),
  badGateway: () => new ApiFailure(502, 0, 'Bad Gateway'),
}
