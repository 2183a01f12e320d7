import type { MarkdownStyle } from '../markdown.ts'

const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

/** Telegram's HTML: these tags and no others, and no quote within a quote. */
export const html: MarkdownStyle = {
  text: escaped,
  bold: inner => `<b>${inner}</b>`,
  italic: inner => `<i>${inner}</i>`,
  strike: inner => `<s>${inner}</s>`,
  code: raw => `<code>${escaped(raw)}</code>`,
  block: (raw, language) =>
    language === undefined
      ? `<pre>${escaped(raw)}</pre>`
      : `<pre><code class="language-${escaped(language)}">${escaped(raw)}</code></pre>`,
  link: (inner, url) => `<a href="${escaped(url)}">${inner}</a>`,
  quote: inner => `<blockquote>${inner.replace(/<\/?blockquote>/g, '')}</blockquote>`,
}
