import { startChild } from '../children.ts'
import { asBigint, asNumber } from '../shape.ts'

export interface BarePage {
  url: string
  /** the newest line */
  newest: string
  /** an event that makes a line; gives the moment before it is written */
  send(): Promise<bigint>
  end(): Promise<void>
}

/** What no console can be faster than: a page of one line, from a server that does nothing else. */
export const openBarePage = async (): Promise<BarePage> => {
  const server = startChild(new URL('./bare-page.process.ts', import.meta.url), 'bare page')
  return {
    url: `http://127.0.0.1:${asNumber(await server.call('begin'))}/`,
    newest: 'li:last-child a',
    send: async () => asBigint(await server.call('send')),
    end: server.end,
  }
}
