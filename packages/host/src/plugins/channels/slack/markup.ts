import type { MarkdownStyle } from '../markdown.ts'

/** Slack obeys these three, and nothing else that could call somebody: `<!channel>` and `<@U…>` become words. */
export const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** A sign around each line: it ends with its line. What has the sign in it already would end too early. */
const around = (sign: string) => (inner: string) =>
  inner.includes(sign) ? inner : inner.replace(/\S(?:.*\S)?/g, words => `${sign}${words}${sign}`)

/** Slack's own markup, which has no way to write its signs as words. */
export const mrkdwn: MarkdownStyle = {
  text: escaped,
  bold: around('*'),
  italic: around('_'),
  strike: around('~'),
  code: raw => (raw.includes('`') ? escaped(raw) : `\`${escaped(raw)}\``),
  // A zero-width space keeps what is written from ending the block.
  block: raw => `\`\`\`\n${escaped(raw).replaceAll('```', '``\u200b`')}\n\`\`\``,
  link: (inner, url) =>
    `<${escaped(url.replace(/[<>|\s]/g, encodeURIComponent))}|${inner.replace(/\s+/g, ' ')}>`,
  quote: inner => inner.replace(/^/gm, '> '),
}
