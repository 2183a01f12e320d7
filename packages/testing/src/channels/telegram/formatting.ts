import { ApiFailure } from './failure.ts'

/**
 * HTML as the Bot API takes it: https://core.telegram.org/bots/api#html-style. Only these tags, all of them closed in the
 * right order, four named characters, and no quote within a quote.
 */
const tags: ReadonlySet<string> = new Set(
  'b strong i em u ins s strike del span tg-spoiler a tg-emoji code pre blockquote'.split(' '),
)
const named: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"' }

/** What people read; refuses what the Bot API would. */
export function textOfHtml(source: string): string {
  const open: string[] = []
  let text = ''
  const bytesBefore = (at: number) => Buffer.byteLength(source.slice(0, at))
  const fail = (what: string, at: number): never => {
    throw new ApiFailure(400, `Bad Request: can't parse entities: ${what} at byte offset ${bytesBefore(at)}`)
  }
  let at = 0
  while (at < source.length) {
    const character = source[at]
    if (character === '&') {
      const [whole = '', name = '', decimal, hex] =
        /^&(?:([a-z]+)|#(\d+)|#x([\da-f]+));/i.exec(source.slice(at, at + 12)) ?? []
      const meant =
        decimal !== undefined
          ? String.fromCodePoint(Number(decimal))
          : hex !== undefined
            ? String.fromCodePoint(Number.parseInt(hex, 16))
            : named[name]
      text += meant ?? '&'
      at += meant === undefined ? 1 : whole.length
    } else if (character === '<') {
      const end = source.indexOf('>', at)
      const [, slash, name = ''] = /^<(\/?)([a-z][a-z-]*)/i.exec(source.slice(at)) ?? []
      const tag = name.toLowerCase()
      if (slash === '/') {
        if (open.pop() !== tag) fail('Unmatched end tag', at)
      } else {
        if (end < 0 || !tags.has(tag)) fail(`Unsupported start tag "${tag}"`, at)
        if (tag === 'blockquote' && open.includes(tag)) fail('Nested quotes are not supported', at)
        open.push(tag)
      }
      at = end + 1
    } else {
      text += character
      at++
    }
  }
  const unclosed = open.at(-1)
  if (unclosed !== undefined)
    throw new ApiFailure(
      400,
      `Bad Request: can't parse entities: Can't find end tag corresponding to start tag "${unclosed}"`,
    )
  return text.trim()
}
