import type { RESTOptions } from '@discordjs/rest'
import { DiscordLimit } from './refusals.ts'

type Answer = Awaited<ReturnType<RESTOptions['makeRequest']>>

/**
 * What Discord allows, from the headers of its answers: https://docs.discord.com/developers/topics/rate-limits. A
 * request that would be refused is not made, since refused ones count towards a ban. There are no timers: whoever is
 * limited is told for how long.
 */
export interface Limits {
  /** throws a `DiscordLimit` for what has to wait */
  check(method: string | undefined, url: string): void
  /** the answer without what the library would wait for; throws a `DiscordLimit` for a refusal */
  note(method: string | undefined, url: string, answer: Answer): Promise<Answer>
}

const everywhere = ''
/** where an answer does not say how long */
const unknownMs = 5000

export function createLimits(now: () => number): Limits {
  const until = new Map<string, number>()

  const limit = (key: string, ms: number) => {
    for (const [other, at] of until) if (at <= now()) until.delete(other)
    until.set(key, now() + ms)
  }

  return {
    check(method, url) {
      const keys = isInteraction(url) ? [] : [everywhere, routeOf(method, url)]
      const waitMs = Math.max(...keys.map(key => until.get(key) ?? 0), 0) - now()
      if (waitMs > 0) throw new DiscordLimit(waitMs)
    },
    async note(method, url, answer) {
      const { headers } = answer
      const route = routeOf(method, url)
      if (answer.status === 429) {
        const { retry_after, global } = refusalIn(await answer.text())
        const seconds = Number(retry_after ?? headers.get('retry-after') ?? Number.NaN)
        const ms = Number.isFinite(seconds) ? Math.ceil(seconds * 1000) : unknownMs
        limit(global === true || headers.has('x-ratelimit-global') ? everywhere : route, ms)
        throw new DiscordLimit(ms)
      }
      if (headers.get('x-ratelimit-remaining') === '0')
        limit(route, Number(headers.get('x-ratelimit-reset-after') ?? 0) * 1000)
      const others = [...headers].filter(([name]) => !name.startsWith('x-ratelimit-'))
      return { ...answer, headers: new Headers(others) }
    },
  }
}

/** A server between Discord and us may answer with a page instead. */
function refusalIn(text: string): { retry_after?: unknown; global?: unknown } {
  try {
    const content: unknown = JSON.parse(text)
    return typeof content === 'object' && content !== null ? content : {}
  } catch {
    return {}
  }
}

const isInteraction = (url: string) => /\/v\d+\/interactions\//.test(url)

/** Each channel, server and webhook is counted alone, whatever message it is about. */
function routeOf(method = 'GET', url: string): string {
  const [, major = '', rest = ''] = /\/v\d+(\/[a-z]+\/\d+)?(.*)$/.exec(new URL(url).pathname) ?? []
  return `${method} ${major}${rest.replace(/\/reactions\/.*/, '/reactions').replaceAll(/\d{15,}/g, ':id')}`
}
