import { type MarkdownStyle, renderMarkdown } from '../markdown.ts'

const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

/** A line break that is shown as it is, until those of the text around it are tags. */
const kept = '\0'

const html: MarkdownStyle = {
  text: escaped,
  bold: inner => `<strong>${inner}</strong>`,
  italic: inner => `<em>${inner}</em>`,
  strike: inner => `<del>${inner}</del>`,
  code: raw => `<code>${escaped(raw)}</code>`,
  block: (raw, language) => {
    const code = escaped(raw).replaceAll('\n', kept)
    return language === undefined
      ? `<pre><code>${code}</code></pre>`
      : `<pre><code class="language-${escaped(language)}">${code}</code></pre>`
  },
  link: (inner, url) => `<a href="${escaped(url)}">${inner}</a>`,
  quote: inner => `<blockquote>${inner}</blockquote>`,
}

/** The HTML of a text in Markdown; undefined: it has no markup. */
export function htmlOf(text: string): string | undefined {
  const rendered = renderMarkdown(text, html).replaceAll('\n', '<br>').replaceAll(kept, '\n')
  return rendered === escaped(text).replaceAll('\n', '<br>') ? undefined : rendered
}
