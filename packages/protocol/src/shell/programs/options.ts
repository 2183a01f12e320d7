import { isOperand } from '../arguments.ts'
import type { Argument, Call, Rule } from '../types.ts'

/** The options of a program that keep it harmless. All others do not. */
export interface AllowedOptions {
  /** letters that stand alone */
  letters?: string
  /** letters that take a value */
  valued?: string
  /** letters and long names whose value may be anything: the program never takes it for something else */
  free?: string
  /** long names, separated by blanks; with `=` if they take a value */
  long?: string
  /** long names, in full or shortened, and letters that make it run another program */
  runs?: string
  /** `-5` and the like */
  numbers?: boolean
  operands?: (operands: readonly Argument[], call: Call) => void
}

export const anyArguments: Rule = () => {}

export const unseenArguments = ({ name, judging }: Call): void =>
  judging.note('hidden', `${name} gets arguments that are decided only when it runs`)

export const strangeOption = ({ name, judging }: Call): void =>
  judging.note('unknown', `${name} is used with an option that is not on the list`)

/** Reads arguments the way GNU programs do: options may stand anywhere before `--`. */
export function withOptions(allowed: AllowedOptions): Rule {
  const long = new Set((allowed.long ?? '').split(' '))
  const runs = (allowed.runs ?? '').split(' ').filter(name => name !== '')
  return call => {
    const { args, name, judging } = call
    const operands: Argument[] = []
    for (let at = 0; at < args.length; at++) {
      const argument = args[at] as Argument
      if (argument.text === '--') {
        operands.push(...args.slice(at + 1))
        break
      }
      if (isOperand(argument)) {
        operands.push(argument)
        continue
      }
      const option = readOption(argument, allowed, long)
      if (option === 'unseen') return unseenArguments(call)
      if (option === 'strange') {
        const text = argument.text ?? argument.head
        return runs.some(one => isWayToWrite(text, one))
          ? judging.note('hidden', `${name} runs another program with that option`)
          : strangeOption(call)
      }
      if (option === 'alone') continue
      const value = args[++at]
      if (!value) return strangeOption(call)
      if (
        option === 'free'
          ? !value.single
          : value.text === undefined
            ? !value.plain || !value.single
            : !isOperand(value)
      )
        return value.text === undefined ? unseenArguments(call) : strangeOption(call)
    }
    allowed.operands?.(operands, call)
  }
}

/** `value` and `free`: the next word belongs to it. */
function readOption(
  argument: Argument,
  allowed: AllowedOptions,
  long: ReadonlySet<string>,
): 'alone' | 'value' | 'free' | 'strange' | 'unseen' {
  const known = argument.text ?? argument.head
  if (argument.text === undefined && (!argument.single || known === '' || known === '-')) return 'unseen'
  if (known.startsWith('--')) {
    const equals = known.indexOf('=')
    if (equals > 0) return long.has(known.slice(2, equals + 1)) ? 'alone' : 'strange'
    if (argument.text === undefined) return 'unseen'
    if (long.has(known.slice(2))) return 'alone'
    return long.has(`${known.slice(2)}=`) ? 'value' : 'strange'
  }
  if (allowed.numbers && argument.text !== undefined && /^-\d+$/.test(known)) return 'alone'
  for (let at = 1; at < known.length; at++) {
    const letter = known.charAt(at)
    const isFree = allowed.free?.includes(letter)
    if (isFree || allowed.valued?.includes(letter)) {
      // What follows in the same word is the value, whatever it will be.
      if (at < known.length - 1 || argument.text === undefined) return 'alone'
      return isFree ? 'free' : 'value'
    }
    if (!allowed.letters?.includes(letter)) return 'strange'
  }
  return argument.text === undefined ? 'unseen' : 'alone'
}

function isWayToWrite(text: string, option: string): boolean {
  if (option.length === 1) return /^-[^-]/.test(text) && text.includes(option)
  const name = text.replace(/=.*$/s, '')
  return name.length > 3 && `--${option}`.startsWith(name)
}
