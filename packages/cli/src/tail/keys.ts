/** A letter as it is, or the name of a key that has none. */
export type Key = string

const named: Record<string, Key> = {
  '\u001b[A': 'up',
  '\u001bOA': 'up',
  '\u001b[B': 'down',
  '\u001bOB': 'down',
  '\u001b[C': 'right',
  '\u001bOC': 'right',
  '\u001b[D': 'left',
  '\u001bOD': 'left',
  '\u001b[5~': 'page up',
  '\u001b[6~': 'page down',
  '\u001b[H': 'home',
  '\u001bOH': 'home',
  '\u001b[1~': 'home',
  '\u001b[F': 'end',
  '\u001bOF': 'end',
  '\u001b[4~': 'end',
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
const whole = /^\u001b(?:\[[0-?]*[ -/]*[@-~]|O[ -~])/
// biome-ignore lint/suspicious/noControlCharactersInRegex: keys send them
const begun = /^\u001b(?:\[[0-?]*[ -/]*|O)?$/

/** The Escape key sends what every other such key begins with: it is one if nothing follows. */
const escapeMs = 40

/** Makes keys of what a terminal in raw mode sends, in whatever pieces it comes. */
export function createKeys(onKey: (key: Key) => void): { take(text: string): void; end(): void } {
  let rest = ''
  let waiting: NodeJS.Timeout | undefined

  const read = (isAll: boolean) => {
    while (rest !== '') {
      const sequence = whole.exec(rest)?.[0]
      if (sequence === undefined && !isAll && begun.test(rest)) {
        waiting = setTimeout(() => read(true), escapeMs)
        return
      }
      const next = sequence ?? String.fromCodePoint(rest.codePointAt(0) ?? 0)
      rest = rest.slice(next.length)
      const key = named[next] ?? next
      // Keys without a name do nothing; a letter has one code point and is no control character.
      if (key.length === 1 ? key >= ' ' : named[next] !== undefined || !/^\p{C}/u.test(key)) onKey(key)
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
