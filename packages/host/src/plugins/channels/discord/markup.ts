import type { MarkdownStyle } from '../markdown.ts'

/**
 * Plain words in Discord's Markdown. A backslash before a sign takes away its meaning: of emphasis, code, spoilers,
 * mentions and links everywhere, of titles, lists and quotes at the beginning of a line. The colon of an address is
 * escaped, too, or backslashes within it would be shown.
 */
export const literal = (raw: string): string =>
  raw
    .replace(/[\\*_~`|<>[\]]/g, '\\$&')
    .replace(/:(?=\/\/)/g, '\\:')
    .replace(/^(\s*)([-+#])/gm, '$1\\$2')
    .replace(/^(\s*\d+)\./gm, '$1\\.')

const fence = '```'

/** Discord's Markdown: https://docs.discord.com/developers/reference#message-formatting. It is close to what agents write. */
export const discordMarkdown: MarkdownStyle = {
  text: literal,
  bold: inner => `**${inner}**`,
  italic: inner => `*${inner}*`,
  strike: inner => `~~${inner}~~`,
  code: raw => (raw.includes('`') ? literal(raw) : `\`${raw}\``),
  // A space that is not seen keeps a fence within the text from ending the block.
  block: (raw, language) =>
    `${fence}${/^[\w+-]{1,20}$/.test(language ?? '') ? language : ''}\n${raw.replaceAll(fence, '``\u200b`')}\n${fence}`,
  link(inner, url) {
    if (inner === literal(url)) return url
    if (!/^https?:/i.test(url))
      return inner === literal(url.replace(/^\w+:/, '')) ? inner : `${inner} (${literal(url)})`
    return `[${inner}](<${url.replaceAll('>', '%3E').replaceAll(/\s/g, '%20')}>)`
  },
  quote: inner => inner.replace(/^/gm, '> '),
}
