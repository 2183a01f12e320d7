const tag = /<(\/?)internal(?:\s[^<>]*)?>/gi

/**
 * What people get to see of what an agent said: everything but its `<internal>` parts. One that is never closed goes to
 * the end: rather too little is shown than what was not meant for anybody.
 */
export function withoutInternal(text: string): string {
  let shown = ''
  let from = 0
  let depth = 0
  let found = false
  for (const match of text.matchAll(tag)) {
    found = true
    if (depth === 0) shown += text.slice(from, match.index)
    depth = Math.max(0, depth + (match[1] === '' ? 1 : -1))
    from = match.index + match[0].length
  }
  if (!found) return text
  return (depth === 0 ? shown + text.slice(from) : shown).trim()
}
