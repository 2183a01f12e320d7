import { marked, type Token, type Tokens } from 'marked'

/** How a platform writes what agents write in Markdown. Every function is given text that is rendered already, except `text`, `code` and `block`. */
export interface MarkdownStyle {
  /** plain words: whatever the platform would take for markup is escaped */
  text(raw: string): string
  bold(inner: string): string
  italic(inner: string): string
  strike(inner: string): string
  code(raw: string): string
  block(raw: string, language: string | undefined): string
  link(inner: string, url: string): string
  quote(inner: string): string
}

/** Nothing but words: for platforms without markup, and where markup was refused. */
export const plain: MarkdownStyle = {
  text: raw => raw,
  bold: inner => inner,
  italic: inner => inner,
  strike: inner => inner,
  code: raw => raw,
  block: raw => raw,
  link: (inner, url) => (inner === url ? url : `${inner} (${url})`),
  quote: inner => inner.replace(/^/gm, '> '),
}

/** What it means to people, in another platform's markup. Whatever is not understood is shown as it was written. */
export function renderMarkdown(markdown: string, style: MarkdownStyle): string {
  return blocks(marked.lexer(markdown, { gfm: true }), style)
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

const safeLink = /^(?:https?|mailto|tel):/i

function blocks(tokens: readonly Token[], style: MarkdownStyle): string {
  return tokens.map(token => block(token, style)).join('')
}

function block(token: Token, style: MarkdownStyle): string {
  if (token.type === 'space') return '\n\n'
  if (token.type === 'hr') return '———\n\n'
  if (isCode(token)) return `${style.block(token.text, token.lang?.split(/\s/)[0] || undefined)}\n\n`
  if (isHeading(token)) return `${style.bold(inline(token.tokens, style))}\n\n`
  if (isQuote(token)) return `${style.quote(blocks(token.tokens, style).trim())}\n\n`
  if (isList(token)) return `${list(token, style)}\n\n`
  // A table is read as it was written, in letters of one width.
  if (token.type === 'table') return `${style.block(token.raw.trim(), undefined)}\n\n`
  if (isParagraph(token)) return `${inline(token.tokens, style)}\n\n`
  return inlineToken(token, style)
}

function list({ items, ordered, start }: Tokens.List, style: MarkdownStyle): string {
  return items
    .map((item, i) => {
      const mark = ordered ? `${Number(start || 1) + i}.` : item.task ? (item.checked ? '☑' : '☐') : '•'
      const inner = blocks(item.tokens, style).trim()
      return `${style.text(mark)} ${inner.replaceAll('\n', '\n  ')}`
    })
    .join('\n')
}

const inline = (tokens: readonly Token[] | undefined, style: MarkdownStyle): string =>
  (tokens ?? []).map(token => inlineToken(token, style)).join('')

function inlineToken(token: Token, style: MarkdownStyle): string {
  switch (token.type) {
    case 'strong':
      return style.bold(inline(token.tokens, style))
    case 'em':
      return style.italic(inline(token.tokens, style))
    case 'del':
      return style.strike(inline(token.tokens, style))
    case 'codespan':
      return style.code(token.text)
    case 'br':
      return '\n'
    // The mark of the item says it.
    case 'checkbox':
      return ''
    case 'link':
      return safeLink.test(token.href)
        ? style.link(inline(token.tokens, style), token.href)
        : style.text(token.raw)
    case 'image':
      return safeLink.test(token.href)
        ? style.link(style.text(token.text || token.href), token.href)
        : style.text(token.raw)
    case 'escape':
      return style.text(token.text)
    default:
      return 'tokens' in token && token.tokens ? inline(token.tokens, style) : style.text(token.raw)
  }
}

const isCode = (token: Token): token is Tokens.Code => token.type === 'code'
const isHeading = (token: Token): token is Tokens.Heading => token.type === 'heading'
const isQuote = (token: Token): token is Tokens.Blockquote => token.type === 'blockquote'
const isList = (token: Token): token is Tokens.List => token.type === 'list'
const isParagraph = (token: Token): token is Tokens.Paragraph =>
  token.type === 'paragraph' || (token.type === 'text' && token.tokens !== undefined)
