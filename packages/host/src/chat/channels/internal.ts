const tag = /<(\/?)internal(?:\s[^<>]*)?>/gi
/** What may become such a tag with what follows. */
const beginning = /^<\/?(?:i(?:n(?:t(?:e(?:r(?:n(?:a(?:l(?:\s[^<>]*)?)?)?)?)?)?)?)?)?$/i

/**
 * What people get to see of what an agent said: everything but its `<internal>` parts. One that is never closed goes to
 * the end: rather too little is shown than what was not meant for anybody.
 */
export function withoutInternal(text: string): string {
  const { shown, found } = outside(text, 0)
  return found ? shown.trim() : text
}

/** `depth`: how many `<internal>` are open, before the text and behind it. */
function outside(text: string, before: number): { shown: string; depth: number; found: boolean } {
  let shown = ''
  let from = 0
  let depth = before
  let found = false
  for (const match of text.matchAll(tag)) {
    found = true
    if (depth === 0) shown += text.slice(from, match.index)
    depth = Math.max(0, depth + (match[1] === '' ? 1 : -1))
    from = match.index + match[0].length
  }
  return { shown: depth === 0 ? shown + text.slice(from) : shown, depth, found }
}

/**
 * The same for text that comes in pieces, cut anywhere. What it shows is the beginning of what `withoutInternal` shows of
 * the whole, whatever follows: what may become a tag is held back until it is known.
 */
export interface VisibleText {
  /** what of it can be shown now */
  take(piece: string): string
  /** another text begins; what is open stays open */
  breakOff(): void
}

/** So long a tag is nobody's: nothing more is shown then. */
const longestTag = 1000

export function createVisibleText(): VisibleText {
  let held = ''
  let depth = 0
  let isClosed = false

  return {
    take(piece) {
      if (isClosed) return ''
      const text = held + piece
      const last = text.lastIndexOf('<')
      const isOpen = last >= 0 && beginning.test(text.slice(last))
      // Half a surrogate pair would not be text.
      const end = isOpen ? last : text.length - (/[\ud800-\udbff]$/.test(text) ? 1 : 0)
      held = text.slice(end)
      isClosed = held.length > longestTag
      const { shown, depth: after } = outside(text.slice(0, end), depth)
      depth = after
      return shown
    },
    breakOff() {
      // With the text that follows it may be a tag, or not.
      isClosed ||= held !== ''
    },
  }
}
