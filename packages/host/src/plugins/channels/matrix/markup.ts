import { escapeXml } from '@hatchway/protocol'
import { type MarkdownStyle, renderMarkdown } from '../markdown.ts'

/** A line break that is shown as it is, until those of the text around it are tags. */
const kept = '\0'

const html: MarkdownStyle = {
  text: escapeXml,
  bold: inner => `<strong>${inner}</strong>`,
  italic: inner => `<em>${inner}</em>`,
  strike: inner => `<del>${inner}</del>`,
  code: raw => `<code>${escapeXml(raw)}</code>`,
  block: (raw, language) => {
    const code = escapeXml(raw).replaceAll('\n', kept)
    return language === undefined
      ? `<pre><code>${code}</code></pre>`
      : `<pre><code class="language-${escapeXml(language)}">${code}</code></pre>`
  },
  link: (inner, url) => `<a href="${escapeXml(url)}">${inner}</a>`,
  quote: inner => `<blockquote>${inner}</blockquote>`,
}

/** The HTML of a text in Markdown; undefined: it has no markup. */
export function htmlOf(text: string): string | undefined {
  const rendered = renderMarkdown(text, html).replaceAll('\n', '<br>').replaceAll(kept, '\n')
  return rendered === escapeXml(text).replaceAll('\n', '<br>') ? undefined : rendered
}
