/** What people read of Discord's Markdown: https://docs.discord.com/developers/reference#message-formatting */

type Rule = readonly [pattern: RegExp, shown: (match: RegExpExecArray) => string]

const inner = (match: RegExpExecArray) => textOfMarkdown(match[1] ?? '')

/** Tried in this order wherever the text has got to. */
const rules: readonly Rule[] = [
  [/^\\([^0-9A-Za-z\s])/, match => match[1] ?? ''],
  [/^```(?:[\w+.-]+\n)?\n*([^\n][\s\S]*?)\n*```/, match => match[1] ?? ''],
  [/^(`+)([\s\S]*?[^`])\1(?!`)/, match => match[2] ?? ''],
  [/^<@[!&]?\d+>/, () => '@somebody'],
  [/^\[((?:\\.|[^\]\\])+)\]\(<?https?:[^\s>]*>?\)/, inner],
  [/^https?:\/\/[^\s<]+/, match => match[0]],
  [/^\*\*((?:\\[\s\S]|[^\\])+?)\*\*(?!\*)/, inner],
  [/^__((?:\\[\s\S]|[^\\])+?)__(?!_)/, inner],
  [/^~~((?:\\[\s\S]|[^\\])+?)~~/, inner],
  [/^\|\|((?:\\[\s\S]|[^\\])+?)\|\|/, () => '█'],
  [/^\*(?=\S)((?:\\[\s\S]|[^*\\])+?)\*(?!\*)/, inner],
  [/^_((?:\\[\s\S]|[^_\\])+?)_(?![0-9A-Za-z])/, inner],
]
/** Signs that mean something at the beginning of a line only. */
const lineStart = /^(?:>>> |> |#{1,3} |-# )/

export function textOfMarkdown(source: string): string {
  let text = ''
  let at = 0
  while (at < source.length) {
    const rest = source.slice(at)
    const start = at === 0 || source[at - 1] === '\n' ? lineStart.exec(rest) : null
    const found = start
      ? ([start, ''] as const)
      : rules.flatMap(([pattern, shown]) => {
          const match = pattern.exec(rest)
          return match ? [[match, shown(match)] as const] : []
        })[0]
    text += found ? found[1] : source[at]
    at += found ? found[0][0].length : 1
  }
  return text
}
