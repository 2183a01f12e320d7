/** A word of a command, as the program will get it. */
export interface Word {
  text: string
  /** the shell makes file names of it, which may be anything that begins as it does */
  isPattern: boolean
  /** written without quotes and escapes */
  isBare: boolean
}

/** What stands between two commands is not told apart: each of them has to be harmless, in any order. */
type Reading = { commands: Word[][] } | { reason: string }

/** Counts what reading costs, one for each character looked at, so that tests can bound it without a clock. */
export interface Meter {
  steps: number
}

const plain = /^[A-Za-z0-9_./,:=+@%-]$/
/** what a backslash before it makes plain in every shell */
const escapable = /^[!-/:-@[-`{-~ ]$/
const quiet = ['2>&1', '>&2', '1>&2', '2>/dev/null', '>/dev/null', '1>/dev/null', '&>/dev/null', '</dev/null']
const mostWords = 200

const no = (reason: string): Reading => ({ reason })

/**
 * Splits a command into simple commands and their words. Only the part of the shell's language that every shell reads in
 * the same way is understood: plain words, quotes, `*` and `?`, pipes, lists, comments, and output that is thrown away.
 * There is no variable, substitution, loop, function, assignment or file to write to in it; whatever else it meets, it
 * says so and gives up.
 */
export function readWords(source: string, meter: Meter): Reading {
  const commands: Word[][] = []
  let words: Word[] = []
  let count = 0
  let at = 0
  /** a pipe, `&&` or `||` that something has to follow */
  let isOpen = false

  const isEnd = () => at >= source.length || ' \t\n;|&'.includes(source.charAt(at))
  const endCommand = () => {
    if (words.length > 0) commands.push(words)
    words = []
  }

  /** Output that is thrown away or joined with other output; whether there was such a redirection. */
  const skipRedirection = (): boolean => {
    const spaced = /^(?:[12]?>|&>|<) ?\/dev\/null|^(?:2>&1|1?>&2)/.exec(source.slice(at, at + 14))?.[0]
    if (spaced === undefined || !quiet.includes(spaced.replace(' ', ''))) return false
    const before = at
    at += spaced.length
    if (isEnd()) return true
    at = before
    return false
  }

  const readQuoted = (mark: string): string | undefined => {
    let text = ''
    for (at++; source.charAt(at) !== mark; at++) {
      meter.steps++
      const letter = source.charAt(at)
      if (letter === '') return undefined
      if (mark === '"' && (letter === '$' || letter === '`' || letter === '!')) return undefined
      // A backslash between double quotes stays, unless it stands before one of a few.
      if (mark === '"' && letter === '\\' && /[$`"\\!\n]/.test(source.charAt(at + 1))) return undefined
      text += letter
    }
    at++
    return text
  }

  const readWord = (): Word | undefined => {
    const word: Word = { text: '', isPattern: false, isBare: true }
    const begin = at
    while (!isEnd()) {
      meter.steps++
      const letter = source.charAt(at)
      if (letter === "'" || letter === '"') {
        const quoted = readQuoted(letter)
        if (quoted === undefined) return undefined
        word.text += quoted
        word.isBare = false
        continue
      }
      if (letter === '\\') {
        if (!escapable.test(source.charAt(at + 1))) return undefined
        word.text += source.charAt(at + 1)
        word.isBare = false
        at += 2
        continue
      }
      const isHome = letter === '~' && at === begin && (source.charAt(at + 1) === '/' || atEnd(at + 1))
      const isTest = (letter === '[' || letter === ']') && at === begin && atEnd(at + 1)
      if (letter === '*' || letter === '?') word.isPattern = true
      else if (!plain.test(letter) && !isHome && !isTest) return undefined
      // Some shells make the path of a program of `=name`.
      if (letter === '=' && at === begin) return undefined
      word.text += letter
      at++
    }
    return word
  }
  const atEnd = (place: number) => place >= source.length || ' \t\n;|&'.includes(source.charAt(place))

  while (at < source.length) {
    meter.steps++
    const letter = source.charAt(at)
    if (letter === ' ' || letter === '\t') at++
    else if (letter === '\\' && source.charAt(at + 1) === '\n') at += 2
    else if (letter === '#') {
      const end = source.indexOf('\n', at)
      meter.steps += (end < 0 ? source.length : end) - at
      at = end < 0 ? source.length : end
    } else if (letter === '\n' || letter === ';' || letter === '|' || source.startsWith('&&', at)) {
      const isDouble = source.startsWith('&&', at) || source.startsWith('||', at)
      if (words.length === 0 && letter !== '\n') return no('it is not a complete shell command')
      if (letter !== '\n') isOpen = isDouble || letter === '|'
      at += isDouble ? 2 : 1
      endCommand()
    } else if (!skipRedirection()) {
      if (++count > mostWords) return no('there are too many words in it')
      const before = at
      const word = readWord()
      if (word === undefined || at === before)
        return no('there is more in it than plain words, pipes, lists and output that is thrown away')
      words.push(word)
      isOpen = false
    }
  }
  endCommand()
  if (isOpen) return no('it is not a complete shell command')
  return { commands }
}
