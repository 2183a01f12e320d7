import { escapeXml } from '@hatchway/protocol'
import type { MarkdownStyle } from '../markdown.ts'

/** Telegram's HTML: these tags and no others, and no quote within a quote. */
export const html: MarkdownStyle = {
  text: escapeXml,
  bold: inner => `<b>${inner}</b>`,
  italic: inner => `<i>${inner}</i>`,
  strike: inner => `<s>${inner}</s>`,
  code: raw => `<code>${escapeXml(raw)}</code>`,
  block: (raw, language) =>
    language === undefined
      ? `<pre>${escapeXml(raw)}</pre>`
      : `<pre><code class="language-${escapeXml(language)}">${escapeXml(raw)}</code></pre>`,
  link: (inner, url) => `<a href="${escapeXml(url)}">${inner}</a>`,
  quote: inner => `<blockquote>${inner.replace(/<\/?blockquote>/g, '')}</blockquote>`,
}
