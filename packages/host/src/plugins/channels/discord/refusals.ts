/** Discord has understood, and says no. */
export class DiscordRefusal extends Error {
  override name = 'DiscordRefusal'
  readonly status: number
  /** one of https://docs.discord.com/developers/topics/opcodes-and-status-codes#json; 0: it gave none */
  readonly code: number
  readonly description: string
  constructor(status: number, code: number, description: string) {
    super(explained(status, code, description))
    this.status = status
    this.code = code
    this.description = description
  }

  /** Neither asking again nor waiting would change it. */
  get isFinal(): boolean {
    return this.status >= 400 && this.status < 500 && this.status !== 401
  }
}

/** Discord asks to wait. */
export class DiscordLimit extends Error {
  override name = 'DiscordLimit'
  readonly retryAfterMs: number
  constructor(retryAfterMs: number) {
    super(`Discord asks to wait for ${Math.ceil(retryAfterMs / 1000)} s.`)
    this.retryAfterMs = retryAfterMs
  }
}

/** It may work later: there was no answer, or Discord has a problem of its own. */
export class DiscordUnreachable extends Error {
  override name = 'DiscordUnreachable'
}

/** Codes of refusals that mean something to us. */
export const codes = {
  unknownChannel: 10003,
  unknownMessage: 10008,
  unknownEmoji: 10014,
  unknownWebhook: 10015,
  tooLarge: 40005,
  missingAccess: 50001,
  anothersMessage: 50005,
  missingPermission: 50013,
  invalidForm: 50035,
  archivedThread: 50083,
  reactionBlocked: 90001,
  lockedThread: 160005,
} as const

export const isRefusal = (error: unknown, ...which: readonly number[]): error is DiscordRefusal =>
  error instanceof DiscordRefusal && which.includes(error.code)

function explained(status: number, code: number, description: string): string {
  if (status === 401)
    return 'Discord does not know this token. Copy it again: https://discord.com/developers/applications, your application, Bot, Reset Token.'
  if (code === codes.missingAccess || code === codes.missingPermission)
    return `Discord refused it (${description}). Give the bot the permissions of its invitation link in this channel.`
  return `Discord refused it (${description}).`
}
