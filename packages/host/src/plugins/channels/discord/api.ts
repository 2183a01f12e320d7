import type { API } from '@discordjs/core'
import { createLimits } from './limits.ts'
import { DiscordLimit, DiscordRefusal, DiscordUnreachable } from './refusals.ts'

export type Core = typeof import('@discordjs/core')
type Rest = typeof import('@discordjs/rest')

/** Discord's HTTP API as one bot. Whatever it rejects with says nothing of a token. */
export interface DiscordApi {
  ask<T>(work: (api: API, signal: AbortSignal) => Promise<T>, patienceMs?: number): Promise<T>
  /** the content of a file that somebody sent */
  download(url: string): AsyncIterable<Uint8Array>
  /** ends what the library does in the background */
  close(): Promise<void>
}

const answerMs = 30_000
/** longer than a slow line needs for the largest file */
export const fileMs = 300_000

export function createApi(options: {
  library<T>(name: string): Promise<T>
  token: string
  server: string
  now(): number
  /** aborted: nothing more is asked */
  signal?: AbortSignal
}): DiscordApi {
  const { token, server } = options
  const ended = options.signal ?? new AbortController().signal
  const limits = createLimits(options.now)
  const load = async () => {
    const { API } = await options.library<Core>('@discordjs/core')
    const lib = await options.library<Rest>('@discordjs/rest')
    const rest = new lib.REST({
      api: server,
      timeout: fileMs,
      // The outbox tries again, in its own time and in the order of each chat.
      retries: 0,
      // The library would wait for a limit to pass, with timers that nothing ends: a limit is an error here.
      makeRequest: async (url, init) => {
        limits.check(init.method, url)
        const response = await lib.DefaultRestOptions.makeRequest(url, init)
        return limits.note(init.method, url, response)
      },
    })
    return { lib, rest, api: new API(rest) }
  }
  let loaded: ReturnType<typeof load> | undefined

  const safe = (error: unknown, lib: Rest): Error => {
    if (error instanceof DiscordLimit) return error
    if (error instanceof lib.DiscordAPIError)
      return new DiscordRefusal(error.status, Number(error.code) || 0, hidden(error.message))
    if (error instanceof lib.HTTPError)
      return new DiscordUnreachable(`Discord has a problem of its own (${error.status}).`)
    return unreachable(error)
  }
  const hidden = (text: string) => text.replaceAll(token, '<token>').replaceAll('\n', ' ')
  const unreachable = (error: unknown) =>
    new DiscordUnreachable(`Discord cannot be reached: ${hidden(reasonIn(error))}`)

  return {
    async ask(work, patienceMs = answerMs) {
      loaded ??= load().catch(error => {
        loaded = undefined
        throw error
      })
      const { lib, rest, api } = await loaded
      // The library forgets the token once it was refused, and then says something else.
      rest.setToken(token)
      try {
        return await work(api, AbortSignal.any([AbortSignal.timeout(patienceMs), ended]))
      } catch (error) {
        throw safe(error, lib)
      }
    },
    async *download(url) {
      let response: Response
      try {
        response = await fetch(url, { signal: AbortSignal.any([AbortSignal.timeout(fileMs), ended]) })
        if (response.status >= 500) throw new Error(`${response.status}`)
      } catch (error) {
        throw unreachable(error)
      }
      if (!response.ok || !response.body)
        throw new DiscordRefusal(response.status, 0, `the file was not given: ${response.status}`)
      try {
        yield* response.body
      } catch (error) {
        throw unreachable(error)
      }
    },
    async close() {
      const { rest } = (await loaded) ?? {}
      rest?.clearHashSweeper()
      rest?.clearHandlerSweeper()
    },
  }
}

/** Network errors often have their words further in, or only a code. */
function reasonIn(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.cause instanceof Error) return reasonIn(error.cause)
  return error.message || ('code' in error ? String(error.code) : error.name)
}
