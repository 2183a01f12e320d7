/** A character, or the name of a key that has none. */
export type Key = string

const arrows = { A: 'up', B: 'down', C: 'right', D: 'left', H: 'home', F: 'end' }

const names: Record<string, Key> = {
  // Terminals send these in one of two forms.
  ...Object.fromEntries(
    Object.entries(arrows).flatMap(([letter, name]) => [
      [`\u001b[${letter}`, name],
      [`\u001bO${letter}`, name],
    ]),
  ),
  '\u001b[1~': 'home',
  '\u001b[4~': 'end',
  '\u001b[5~': 'page up',
  '\u001b[6~': 'page down',
  '\r': 'enter',
  '\n': 'enter',
  '\u001b': 'escape',
  '\u007f': 'backspace',
  '\b': 'backspace',
  '\u0003': 'ctrl-c',
  '\u000c': 'ctrl-l',
  '\u0015': 'ctrl-u',
  '\u001a': 'ctrl-z',
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: keys send them
const complete = /^\u001b(?:\[[0-?]*[ -/]*[@-~]|O[ -~])/
// biome-ignore lint/suspicious/noControlCharactersInRegex: keys send them
const incomplete = /^\u001b(?:\[[0-?]*[ -/]*|O)?$/

/** Other keys send a sequence that starts like the Escape key: it was Escape if nothing follows. */
const escapeMs = 40

/** Turns what a terminal in raw mode sends into keys, in whatever pieces it arrives. */
export function createKeys(onKey: (key: Key) => void): { take(text: string): void; end(): void } {
  let rest = ''
  let waiting: NodeJS.Timeout | undefined

  const read = (isAll: boolean) => {
    while (rest !== '') {
      const sequence = complete.exec(rest)?.[0]
      if (sequence === undefined && !isAll && incomplete.test(rest)) {
        waiting = setTimeout(() => read(true), escapeMs)
        return
      }
      const next = sequence ?? String.fromCodePoint(rest.codePointAt(0) ?? 0)
      rest = rest.slice(next.length)
      const key = names[next] ?? next
      // Sequences and control characters without a name do nothing.
      if (key.length === 1 ? key >= ' ' : names[next] !== undefined || !/^\p{C}/u.test(key)) onKey(key)
    }
  }
  return {
    take(text) {
      clearTimeout(waiting)
      rest += text
      read(false)
    },
    end: () => clearTimeout(waiting),
  }
}
