/**
 * Cuts a text into messages of at most `limit` UTF-16 units: where a paragraph ends, else a line, else a word, else
 * between two graphemes. What a reader sees as one character is cut only where it is longer than a whole message.
 *
 * Each part is rendered by itself, so each has to be whole in Markdown: a block of code that fits into a message is not
 * cut, a longer one is closed and opened again at the cut, with its language, and a link or emphasis of a few words stays
 * in one part. Besides these fences nothing is added, and only white space at the cuts is left out.
 *
 * `isExact`: every sign is shown as it is, so nothing may be added.
 */
export function splitText(text: string, limit: number, { isExact = false } = {}): string[] {
  if (!(limit >= 2)) throw new RangeError('a message must have room for 2 units')
  if (text.length <= limit) return text.trim() === '' ? [] : [text]
  const parts: string[] = []
  let rest = text
  /** the line that opens the block again which the last cut went through */
  let opening = ''
  while (opening.length + rest.length > limit) {
    const window = opening + rest.slice(0, 2 * limit + lookahead)
    const isWhole = window.length === opening.length + rest.length
    const { at, block } = isExact ? { at: cut(window, limit) } : cutMarkdown(window, limit, isWhole)
    const part = window.slice(0, at).trimEnd()
    const isEmptyBlock = block && window.slice(block.content, at).trim() === ''
    const shown = isEmptyBlock ? window.slice(0, block.from).trimEnd() : part
    if (shown !== '') parts.push(block && !isEmptyBlock ? `${shown}\n${block.closing}` : shown)
    // Line breaks are spent at the cut; what indents the next line is part of it.
    rest = rest.slice(at - opening.length).replace(leadingBreaks, '')
    opening = ''
    if (!block) continue
    firstFenceLine.lastIndex = 0
    const [line = '', before = '', fence = '', info = ''] = firstFenceLine.exec(rest) ?? []
    // Nothing of the block is left but its end, which the part before has already.
    if (line !== '' && closes(block, before, fence, info))
      rest = rest.slice(line.length).replace(leadingBreaks, '')
    else {
      opening = block.opening
      if (block.indent > 0) rest = outdented(rest, block)
    }
  }
  if (rest.trim() !== '') parts.push(opening + rest)
  return parts
}

const leadingBreaks = /^(?:[^\S\r\n]*\r?\n)+/
/** Made with the first text that is too long: the rules of all the world's scripts take up some memory. */
let graphemes: Intl.Segmenter | undefined

/** A cut that leaves less than this share of a message is worth less than a finer one that fills it. */
const leastFilled = 1 / 3
/** enough of what follows to see whether the last character goes on */
const lookahead = 64

interface Span {
  from: number
  to: number
}

/** A block of code between fences, by where it is in a text; `to` is infinite where its end has not been found. */
interface Block extends Span {
  /** behind the line that opens it */
  content: number
  fence: string
  /** the line that opens it, without what is not needed to do so again */
  opening: string
  /** the line that closes it: one that is not indented as a list is would end the list before */
  closing: string
  /** columns before the fence: within a list, say */
  indent: number
}

/** `block`: it is cut, and goes on behind the cut. */
function cutMarkdown(window: string, limit: number, isWhole: boolean): { at: number; block?: Block } {
  const blocks = blocksIn(window, isWhole)
  const held = blocks.find(({ from, to }) => from < limit && limit < to)
  if (held && held.from > 0 && held.to - held.from <= limit) return { at: held.from }
  if (held && held.from < limit * leastFilled) {
    const end = limit - held.closing.length - '\n'.length
    const isWorthIt = held.opening.length + held.closing.length <= limit / 2
    if (isWorthIt && held.content < end) return { at: cut(window, end, { after: held.content }), block: held }
    return { at: window.slice(0, held.from).trim() === '' ? cut(window, limit) : held.from }
  }
  return { at: cut(window, limit, { blocks, spans: spansIn(window.slice(0, limit + lookahead)) }) }
}

/** Where to cut: not before `after`, not in a block, and within a span only where there is nowhere else. */
function cut(
  text: string,
  limit: number,
  { after = 0, blocks = [], spans = [] }: { after?: number; blocks?: Block[]; spans?: Span[] } = {},
): number {
  const window = text.slice(0, limit + lookahead)
  graphemes ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' })
  const segments = graphemes.segment(window)
  const isBorder = (at: number) => segments.containing(at)?.index === at
  const isOutside = (places: readonly Span[], at: number) =>
    !places.some(({ from, to }) => from < at && at < to)
  const bordersBy = (pattern: RegExp): Span[] =>
    [...window.matchAll(pattern)].map(({ 0: { length }, index }) => ({ from: index, to: index + length }))
  const aroundBlocks = blocks.flatMap(({ from, to }) => [
    { from, to: from },
    { from: to, to: window[to] === '\n' ? to + 1 : to },
  ])
  const last = (borders: readonly Span[], uncut: readonly Span[] = []) =>
    borders.findLast(
      ({ from, to }) =>
        // White space is left out at the cut, so it may lie beyond the limit; what is before it must not.
        from <= limit &&
        from >= limit * leastFilled &&
        after < to &&
        to <= window.length &&
        isBorder(to) &&
        isOutside(blocks, to) &&
        isOutside(uncut, to),
    )?.to
  const words = bordersBy(/\s/g)
  const at =
    last([...bordersBy(/\n[^\S\n]*\n/g), ...aroundBlocks].toSorted((a, b) => a.to - b.to)) ??
    last(bordersBy(/\n/g)) ??
    last(words, spans) ??
    last(words) ??
    segments.containing(limit)?.index ??
    limit
  if (at > after) return at
  // One character that fills the message: between two of its code points, then.
  return isLowSurrogate(window.charCodeAt(limit)) ? limit - 1 : limit
}

const isLowSurrogate = (unit: number) => unit >= 0xdc00 && unit <= 0xdfff

/** A line that opens or closes a block, behind the mark of a list or not. */
const fenceLine = /^((?:[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+)?[ \t]*)(`{3,}(?=[^`\n]*$)|~{3,})([^\n]*)$/gm
const firstFenceLine = new RegExp(fenceLine.source, 'my')
/** more than any language is called by */
const longestLanguage = 30

function blocksIn(window: string, isWhole: boolean): Block[] {
  const blocks: Block[] = []
  let open: Block | undefined
  for (const { 0: line, 1: before = '', 2: fence = '', 3: info = '', index } of window.matchAll(fenceLine)) {
    const end = index + line.length
    // The window may end within it.
    if (end === window.length && !isWhole) break
    if (open) {
      if (!closes(open, before, fence, info)) continue
      open.to = end
      open = undefined
      continue
    }
    const [language = ''] = info.trim().split(/\s/)
    open = {
      ...{ from: index, content: end + 1, to: isWhole ? window.length : Number.POSITIVE_INFINITY },
      ...{ fence, opening: `${fence}${language.length <= longestLanguage ? language : ''}\n` },
      ...{ closing: before.replace(/\S/g, ' ') + fence, indent: before.length },
    }
    blocks.push(open)
  }
  return blocks
}

const closes = ({ fence: opened }: Block, before: string, fence: string, info: string) =>
  before.trim() === '' && fence.startsWith(opened) && info.trim() === ''

/** The list that a block is in does not go on in the next part, so neither may its indentation. */
function outdented(rest: string, block: Block): string {
  let end = rest.length
  for (const { 0: line, 1: before = '', 2: fence = '', 3: info = '', index } of rest.matchAll(fenceLine)) {
    if (!closes(block, before, fence, info)) continue
    end = index + line.length
    break
  }
  const indentation = new RegExp(`^[ \\t]{1,${block.indent}}`, 'gm')
  return rest.slice(0, end).replace(indentation, '') + rest.slice(end)
}

/** Code, links and emphasis of a few words, in one line. */
const span =
  /`[^`\n]{1,100}`|\[[^[\]\n]{1,100}\]\([^()\s]{1,1000}\)|(?<![\w*_~])(\*{1,3}|_{1,3}|~~)(?=\S)[^\n]{0,100}?\S\1(?!\w)/g

const spansIn = (window: string): Span[] =>
  [...window.matchAll(span)].map(({ 0: { length }, index }) => ({ from: index, to: index + length }))
