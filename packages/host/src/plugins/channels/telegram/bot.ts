import type { InputFile, RawApi } from 'grammy'

export type Grammy = typeof import('grammy')
/** The library has a type of its own for what Node has. */
type Signal = NonNullable<Parameters<RawApi['getMe']>[0]>

/** One bot account, by the Bot API. Whatever it rejects with says nothing of the token. */
export interface Bot {
  /** the part of the token that is no secret */
  id: number
  ask<T>(work: (api: RawApi, signal: Signal) => Promise<T>, signal?: AbortSignal): Promise<T>
  /** the content of a file, by the path that `getFile` gave */
  download(path: string): AsyncIterable<Uint8Array>
  upload(content: Buffer, name: string): Promise<InputFile>
}

/** Telegram has understood, and says no. */
export class TelegramRefusal extends Error {
  override name = 'TelegramRefusal'
  readonly code: number
  readonly description: string
  /** of a chat that has become a supergroup: its new id */
  readonly movedTo: number | undefined
  readonly retryAfterMs: number | undefined
  constructor(
    code: number,
    description: string,
    parameters: { migrate_to_chat_id?: number; retry_after?: number } = {},
  ) {
    super(explained(code, description))
    this.code = code
    this.description = description
    this.movedTo = parameters.migrate_to_chat_id
    this.retryAfterMs = parameters.retry_after === undefined ? undefined : parameters.retry_after * 1000
  }

  /** Neither asking again nor waiting would change it. */
  get isFinal(): boolean {
    return this.code === 400 || this.code === 403
  }
  says(words: RegExp): boolean {
    return this.code === 400 && words.test(this.description)
  }
}

function explained(code: number, description: string): string {
  if (code === 401 || description === 'Not Found')
    return 'Telegram does not know this token. Copy it again from @BotFather (/mybots, API Token).'
  if (code === 409)
    return `Another program takes what this bot hears. Stop it, or create a bot for Hatchway alone (${description}).`
  if (code === 403) return `Telegram refused it (${description}). Let the bot into the chat again.`
  return `Telegram refused it (${description}).`
}

/** Longer than a slow line needs for the largest file. */
const callSeconds = 300
const downloadMs = 300_000

export function createBot(options: {
  library(): Promise<Grammy>
  token: string
  server: string
  /** aborted: nothing more is asked */
  signal?: AbortSignal
}): Bot {
  const { library, token, server } = options
  const ended = options.signal ?? new AbortController().signal
  let loaded: Promise<{ grammy: Grammy; api: RawApi }> | undefined
  const load = () => {
    loaded ??= library().then(grammy => ({
      grammy,
      api: new grammy.Api(token, { apiRoot: server, timeoutSeconds: callSeconds }).raw,
    }))
    return loaded
  }
  const [id = '', secret = ''] = token.split(':')
  const withoutToken = (text: string) => text.replaceAll(token, '<token>').replaceAll(secret, '<token>')

  /** The library's errors have the address of the request within them, and that has the token. */
  const safe = (error: unknown): Error => {
    if (error instanceof TelegramRefusal) return error
    if (isRefusal(error))
      return new TelegramRefusal(error.error_code, withoutToken(error.description), error.parameters)
    const inner =
      error instanceof Error && 'error' in error && error.error instanceof Error ? error.error : error
    const reason = inner instanceof Error ? inner.message : String(inner)
    return new Error(
      `Telegram cannot be reached: ${withoutToken(reason.replace(/^request to \S+ failed, reason: /, ''))}`,
    )
  }

  return {
    id: Number(id),
    async ask(work, signal) {
      const { api } = await load()
      const either = signal ? AbortSignal.any([signal, ended]) : ended
      try {
        return await work(api, either as unknown as Signal)
      } catch (error) {
        throw safe(error)
      }
    },
    async *download(path) {
      try {
        const signal = AbortSignal.any([AbortSignal.timeout(downloadMs), ended])
        const response = await fetch(`${server}/file/bot${token}/${path}`, { signal })
        if (!response.ok || !response.body)
          throw new TelegramRefusal(response.status, `the file was not given: ${response.status}`)
        yield* response.body
      } catch (error) {
        throw safe(error)
      }
    },
    upload: async (content, name) => new (await load()).grammy.InputFile(content, name),
  }
}

const isRefusal = (
  error: unknown,
): error is { error_code: number; description: string; parameters: object } =>
  error instanceof Error && 'error_code' in error && 'description' in error && 'parameters' in error
