/** What somebody wrote in a mail, as plain text without the mails it answers. */

const skipped: ReadonlySet<string> = new Set(['script', 'style', 'head', 'title', 'template', 'noscript'])
const ownLine: ReadonlySet<string> = new Set([
  ...['p', 'div', 'table', 'tr', 'ul', 'ol', 'li', 'pre', 'hr', 'blockquote', 'section', 'article'],
  ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'header', 'footer', 'address'],
])
const entities: Readonly<Record<string, string>> = {
  ...{ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ', shy: '', euro: '€', copy: '©', deg: '°' },
  ...{ hellip: '…', mdash: '—', ndash: '–', lsquo: '‘', rsquo: '’', ldquo: '“', rdquo: '”', bull: '•' },
  ...{ auml: 'ä', ouml: 'ö', uuml: 'ü', Auml: 'Ä', Ouml: 'Ö', Uuml: 'Ü', szlig: 'ß', times: '×' },
  ...{ eacute: 'é', egrave: 'è', agrave: 'à', ccedil: 'ç', ntilde: 'ñ', laquo: '«', raquo: '»' },
}
/** deeper than people quote */
const deepestQuote = 10

const decoded = (text: string): string =>
  text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]+));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return entities[name] ?? whole
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal)
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code).toWellFormed() : '\ufffd'
  })

/** One pass over the source, so that no mail takes longer than its length: tags end at the next `>`. */
export function textOfHtml(html: string): string {
  const lines: { depth: number; text: string }[] = []
  // Where the last ones end: behind it, no end has to be looked for.
  const [lastTag, lastComment] = [html.lastIndexOf('>'), html.lastIndexOf('-->')]
  let line = ''
  let depth = 0
  let at = 0
  let link: { href: string; from: number } | undefined
  const endLine = () => {
    lines.push({ depth, text: line.replace(/\s+/g, ' ').trim() })
    line = ''
    link &&= { ...link, from: 0 }
  }
  const tag = (name: string, isEnd: boolean, source: string) => {
    if (ownLine.has(name) || name === 'br') endLine()
    if (name === 'blockquote') depth = Math.max(0, Math.min(deepestQuote, depth + (isEnd ? -1 : 1)))
    if (name === 'li' && !isEnd) line += '• '
    if (name === 'td' || name === 'th') line += ' '
    if (name === 'img') line += decoded(/\balt\s*=\s*"([^"]{1,200})"/i.exec(source)?.[1] ?? '')
    if (name !== 'a') return
    // Where a link goes is shown: its words may say something else.
    if (isEnd && link && line.slice(link.from).trim() !== link.href) line += ` (${link.href})`
    const href = isEnd ? undefined : /\bhref\s*=\s*["']?(https?:[^\s"'>]{1,2000})/i.exec(source)?.[1]
    link = href === undefined ? undefined : { href: decoded(href), from: line.length }
  }
  while (at < html.length) {
    const open = html.indexOf('<', at)
    line += decoded(html.slice(at, open < 0 ? undefined : open))
    if (open < 0) break
    const isComment = html.startsWith('<!--', open)
    if (open > (isComment ? lastComment : lastTag) || !/[a-z/!?]/i.test(html[open + 1] ?? '')) {
      // A sign like any other, as in "a < b".
      line += '<'
      at = open + 1
      continue
    }
    at = html.indexOf(isComment ? '-->' : '>', open) + (isComment ? 3 : 1)
    if (isComment) continue
    const source = html.slice(open, Math.min(at, open + 4000))
    const [, slash = '', given = ''] = /^<(\/?)([a-z][a-z\d]*)/i.exec(source) ?? []
    const name = given.toLowerCase()
    if (slash === '' && skipped.has(name)) at = endOf(html, name, at)
    else tag(name, slash !== '', source)
  }
  endLine()
  while (lines.at(-1)?.text === '') lines.pop()
  return joined(lines)
}

/** Behind the element; one that does not end hides the rest, as it does in a browser. */
function endOf(html: string, name: string, from: number): number {
  const end = new RegExp(`</${name}\\s*>`, 'gi')
  end.lastIndex = from
  return end.exec(html) ? end.lastIndex : html.length
}

const joined = (lines: readonly { depth: number; text: string }[]): string =>
  lines
    .map(({ depth, text }) => `${'> '.repeat(depth)}${text}`.trimEnd())
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()

const isQuoted = (line: string) => /^\s?>/.test(line)
const isBlank = (line: string) => line.trim() === ''
/** What mail programs put before what is answered: it names a time or a year, and ends in a colon. */
const introduction = /(?:\d{1,2}[:.]\d{2}|\b\d{4}\b)[\s\S]*:\s*$/
const longestIntroduction = { lines: 3, characters: 500 }
/** programs that do not mark each line */
const separator = /^\s*-{3,}\s*(?:Original Message|Ursprüngliche Nachricht|Message d'origine)\s*-{3,}\s*$/i

/**
 * Splits off the mail that was answered where it stands at the end, and nothing else: a line too much does no harm, one too
 * few does. What is quoted between somebody's own words belongs to them.
 */
export function withoutHistory(text: string): { text: string; history: string | undefined } {
  const lines = text.split('\n')
  const whole = { text: text.trim(), history: undefined }
  const cutAt = (at: number, historyFrom = at) => {
    const own = lines.slice(0, at).join('\n').trim()
    const history = lines
      .slice(historyFrom)
      .map(line => line.replace(/^\s?> ?/, ''))
      .join('\n')
      .trim()
    // Whoever wrote nothing but a quotation means the quotation.
    return own === '' ? whole : { text: own, history }
  }
  const marked = lines.findIndex(line => separator.test(line))
  if (marked >= 0) return cutAt(marked, marked + 1)
  let from = lines.length
  while (from > 0 && (isQuoted(lines[from - 1] ?? '') || isBlank(lines[from - 1] ?? ''))) from--
  const first = lines.findIndex((line, index) => index >= from && isQuoted(line))
  return first < 0 ? whole : cutAt(introductionBefore(lines, from) ?? from, first)
}

/** Where the lines begin that introduce the quotation; undefined: none do. */
function introductionBefore(lines: readonly string[], end: number): number | undefined {
  let from = end
  while (from > 0 && !isBlank(lines[from - 1] ?? '')) {
    if (end - from >= longestIntroduction.lines) return undefined
    from--
  }
  const paragraph = lines.slice(from, end).join('\n')
  return paragraph.length <= longestIntroduction.characters && introduction.test(paragraph) ? from : undefined
}
