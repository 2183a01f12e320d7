import { Lexer, type Token, type Tokens } from 'marked'
import { Fragment, type ReactNode, useMemo } from 'react'
import { visible } from './text.ts'

/**
 * What an agent wrote, with its headings, lists and code. Only the words are taken from it: every element is made here,
 * HTML in it stays text, nothing is loaded, and a link says where it leads.
 */
const longest = 20_000
const deepest = 12

export function Markdown({ text }: { text: string }) {
  const shown = useMemo(() => visible(text), [text])
  return <>{useMemo(() => drawn(shown), [shown])}</>
}

function drawn(text: string): ReactNode {
  if (text.length > longest || isDeep(text)) return <p className="as-is">{text}</p>
  return blocks(parsed(text), 0)
}

/**
 * The parser's time can grow with the square of a text and more, and an agent chooses the text: what could keep it busy
 * is left as it is, piece by piece.
 */
function parsed(text: string): Token[] {
  const parser = new Lexer({ gfm: true, breaks: true })
  const tokens = parser.blockTokens(text, [])
  for (const { src, tokens: inside } of parser.inlineQueue) {
    if (isTame(src)) parser.inlineTokens(src, inside)
    else inside.push({ type: 'text', raw: src, text: src })
  }
  return tokens
}

const isTame = (piece: string): boolean =>
  (piece.match(/[*_~`[\]]/g)?.length ?? 0) <= 100 && !/[^\s|]{400}/.test(piece)

/** Lists in lists and quotes in quotes, or what looks like them. */
const isDeep = (text: string): boolean => /^[\s>*+\-\d.)]{100}/m.test(text)

const list = (tokens: readonly Token[], draw: (token: Token) => ReactNode) =>
  // biome-ignore lint/suspicious/noArrayIndexKey: the text they are made of does not change
  tokens.map((token, i) => <Fragment key={`${i}-${token.type}`}>{draw(token)}</Fragment>)

const blocks = (tokens: readonly Token[], depth: number): ReactNode =>
  list(tokens, token => block(token as Tokens.Generic, depth))
const spans = (tokens: readonly Token[] | undefined, raw: string, depth: number): ReactNode =>
  tokens === undefined || depth > deepest ? raw : list(tokens, token => span(token as Tokens.Generic, depth))

function block(token: Tokens.Generic, depth: number): ReactNode {
  if (depth > deepest) return token.raw
  const inside = () => spans(token.tokens, token.text ?? token.raw, depth + 1)
  switch (token.type) {
    case 'space':
    case 'def':
      return token.type === 'def' ? <p>{token.raw}</p> : null
    case 'paragraph':
      return <p>{inside()}</p>
    case 'text':
      return token.tokens ? inside() : token.text
    case 'heading':
      // The page has headings of its own; these only look like some.
      return <p className={`heading depth-${token.depth}`}>{inside()}</p>
    case 'code':
      return (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable without a mouse
        <pre tabIndex={0}>
          <code>{token.text}</code>
        </pre>
      )
    case 'blockquote':
      return <blockquote>{blocks(token.tokens ?? [], depth + 1)}</blockquote>
    case 'hr':
      return <hr />
    case 'list':
      return drawList(token as Tokens.List, depth)
    case 'table':
      return drawTable(token as Tokens.Table, depth)
    case 'checkbox':
      return checkbox(token.checked === true)
    default:
      return <p className="as-is">{token.raw}</p>
  }
}

const checkbox = (isChecked: boolean) => (
  <span role="img" aria-label={isChecked ? 'done' : 'not done'}>
    {isChecked ? '☑ ' : '☐ '}
  </span>
)

function drawList({ ordered, start, items }: Tokens.List, depth: number): ReactNode {
  const drawnItems = items.map((item, i) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the text it is made of does not change
    <li key={i}>{blocks(item.tokens, depth + 1)}</li>
  ))
  return ordered ? <ol start={typeof start === 'number' ? start : 1}>{drawnItems}</ol> : <ul>{drawnItems}</ul>
}

function drawTable({ header, rows, align }: Tokens.Table, depth: number): ReactNode {
  const cell = (Tag: 'th' | 'td', { tokens, text }: Tokens.TableCell, i: number) => (
    <Tag key={i} className={align[i] ?? undefined}>
      {spans(tokens, text, depth + 1)}
    </Tag>
  )
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable without a mouse
    <div className="scrolls" tabIndex={0}>
      <table>
        <thead>
          <tr>{header.map((each, i) => cell('th', each, i))}</tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the text it is made of does not change
            <tr key={i}>{row.map((each, j) => cell('td', each, j))}</tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function span(token: Tokens.Generic, depth: number): ReactNode {
  const inside = () => spans(token.tokens, token.text ?? token.raw, depth + 1)
  switch (token.type) {
    case 'strong':
      return <strong>{inside()}</strong>
    case 'em':
      return <em>{inside()}</em>
    case 'del':
      return <del>{inside()}</del>
    case 'codespan':
      return <code>{token.text}</code>
    case 'br':
      return <br />
    case 'escape':
      return token.text
    case 'checkbox':
      return checkbox(token.checked === true)
    case 'text':
      return token.tokens ? inside() : token.text
    case 'link':
      return link(token as Tokens.Link, inside)
    default:
      return token.raw
  }
}

const leadable = new Set(['http:', 'https:', 'mailto:'])

/** Words that say one address and lead to another are told apart. */
function link({ href, raw, text }: Tokens.Link, inside: () => ReactNode): ReactNode {
  const url = URL.parse(href)
  if (!url || !leadable.has(url.protocol)) return raw
  const place = url.protocol === 'mailto:' ? url.pathname : url.host
  const isPlain = text === href || `http://${text}` === href || `mailto:${text}` === href
  return (
    <a href={url.href} title={url.href} target="_blank" rel="noopener noreferrer">
      {inside()}
      {!isPlain && <span className="leads-to"> ({place})</span>}
    </a>
  )
}
