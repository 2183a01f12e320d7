import { programs } from './programs.ts'
import { type Meter, readWords, type Word } from './words.ts'

/** Whether a shell command is known to do nothing but look, and if not, why. */
export type ShellVerdict = { harmless: true } | { harmless: false; reason: string }

/** Bounds that hold before any rule is applied. */
const most = { length: 10_000, depth: 3 }

/**
 * Whatever a shell command could hide from a reader: control characters, blanks that are no blanks, marks that change the
 * direction of writing or take no room, halves of characters.
 */
const invisible = /[^\P{C}\n\t]|(?! )\p{Z}|(?![\ufe0e\ufe0f])\p{DI}|\u2800/u

/**
 * Told from its text alone: every program is on a short list, with options that are all known, and nothing is written
 * anywhere. Only that is harmless; nothing is guessed about the rest. Reasons name programs and quote nothing else.
 */
export function judgeShell(command: string, meter: Meter = { steps: 0 }): ShellVerdict {
  const reason = fault(command, 0, meter)
  return reason === undefined ? { harmless: true } : { harmless: false, reason }
}

function fault(command: string, depth: number, meter: Meter): string | undefined {
  if (command.length > most.length) return 'it is too long to judge'
  if (depth > most.depth) return 'it is nested too deeply'
  meter.steps += command.length
  if (invisible.test(command)) return 'there are characters in it that cannot be seen'
  const read = readWords(command, meter)
  if ('reason' in read) return read.reason
  for (const words of read.commands) {
    const found = faultOf(words, depth, meter)
    if (found !== undefined) return found
  }
  return undefined
}

function faultOf([first, ...args]: readonly Word[], depth: number, meter: Meter): string | undefined {
  if (!first?.isBare || first.isPattern) return 'the name of a program is disguised'
  const name = first.text.replace(/^\/(?:usr\/)?bin\//, '')
  meter.steps += args.reduce((steps, { text }) => steps + text.length, 1)
  if (name === 'bash' || name === 'sh' || name === 'dash') {
    const [option, text] = args
    // An option may follow `-c`, and the text is then the word after it.
    if (!/^-[eu]{0,2}c$/.test(option?.text ?? '') || !text || text.isPattern || /^[-+]/.test(text.text))
      return `${name} runs what cannot be seen here`
    return fault(text.text, depth + 1, meter)
  }
  const rule = programs.get(name)
  if (!rule)
    return /^[\w.+-]{1,64}$/.test(name) ? `${name} is not on the list` : 'a program is not on the list'
  const found = rule(args)
  return found === undefined ? undefined : `${name} ${found}`
}
