/** What the Bot API answers instead of a result: https://core.telegram.org/bots/api#making-requests */
export class ApiFailure extends Error {
  readonly code: number
  readonly parameters: { retry_after?: number; migrate_to_chat_id?: number } | undefined
  constructor(code: number, description: string, parameters?: ApiFailure['parameters']) {
    super(description)
    this.code = code
    this.parameters = parameters
  }
}
