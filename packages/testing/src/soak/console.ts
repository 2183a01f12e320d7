import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../random.ts'

/**
 * A browser with the console open, as far as the daemon can see it: it signs in by the link, reads the overview, keeps
 * the event stream open, and now and then loses its connection and comes back for what it missed.
 */
export interface Console {
  close(): Promise<{ reconnects: number; missed: number }>
}

const shortestMs = 10_000
const longestMs = 40_000

export function createConsole(options: {
  link: string
  random: Random
  complain(about: string): void
}): Console {
  const { link, random, complain } = options
  const stop = new AbortController()
  let reconnects = -1
  let missed = 0
  let position: string | undefined

  const watch = async (cookie: string) => {
    const get = (path: string, signal: AbortSignal, headers = {}) =>
      fetch(new URL(path, link), { headers: { cookie, ...headers }, signal })
    while (!stop.signal.aborted) {
      const lost = AbortSignal.timeout(shortestMs + random.below(longestMs - shortestMs))
      const end = AbortSignal.any([stop.signal, lost])
      try {
        reconnects++
        await (await get('/api/host/overview', end)).json()
        await (await get('/api/chats', end)).json()
        const headers = {
          accept: 'text/event-stream',
          ...(position !== undefined && { 'last-event-id': position }),
        }
        const { body, status } = await get('/api/host/feed', end, headers)
        if (status !== 200 || body === null) throw new Error(`the feed answered ${status}`)
        let rest = ''
        for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
          const lines = (rest + chunk).split('\n')
          rest = lines.pop() ?? ''
          for (const line of lines) {
            if (line.startsWith('id: ')) position = line.slice(4)
            if (line.startsWith('data: {"kind":"hello"') && line.includes('"complete":false')) missed++
          }
        }
      } catch (error) {
        if (!end.aborted) complain(`the console lost its host: ${error}`)
      }
      await sleep(500)
    }
  }

  const open = async () => {
    const entered = await fetch(link, { redirect: 'manual' })
    await entered.text()
    const cookie = entered.headers.getSetCookie()[0]?.split(';')[0]
    if (cookie === undefined) return complain('the console was not let in')
    await watch(cookie)
  }
  const done = open().catch(error => complain(`the console failed: ${error}`))
  return {
    async close() {
      stop.abort()
      await done
      return { reconnects, missed }
    },
  }
}
