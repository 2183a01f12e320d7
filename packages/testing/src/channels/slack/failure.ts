/** What the Web API answers instead of a result: https://docs.slack.dev/apis/web-api#responses */
export class SlackFailure extends Error {
  /** of the HTTP response; anything but 200 has no body to speak of */
  readonly status: number
  readonly retryAfter: number | undefined
  constructor(code: string, status = 200, retryAfter?: number) {
    super(code)
    this.status = status
    this.retryAfter = retryAfter
  }
}
