import type { Argument, Call } from '../types.ts'
import { strangeOption, unseenArguments } from './options.ts'

/** awk with a program that can be read here, and that neither runs, writes, nor chooses what it reads. */
export function awk(call: Call) {
  const { args, judging } = call
  let at = 0
  for (; at < args.length; at++) {
    const { text, head, single } = args[at] as Argument
    if (text === '--') {
      at++
      break
    }
    if (!head.startsWith('-')) break
    const letter = head.charAt(1)
    if (letter !== 'F' && letter !== 'v')
      return judging.note('hidden', 'what awk is told to do may be in a file that cannot be seen here')
    const value =
      (text ?? head).length > 2 ? { text: text?.slice(2), head: head.slice(2), single } : args[++at]
    if (!value?.single || (text === undefined && head.length === 2)) return unseenArguments(call)
    if (letter === 'v' && !/^(?:[a-z_]\w*|O?FS|O?RS)=/.test(value.head)) return strangeOption(call)
  }
  const program = args[at]?.text
  if (program === undefined)
    return judging.note('hidden', 'what awk is told to do is decided only when it runs')
  if (!isPlainAwk(program)) judging.note('hidden', 'awk is told to do something that is not plain reading')
  for (const operand of args.slice(at + 1)) if (!isLocalFile(operand)) return unseenArguments(call)
}

/** gawk reads a network if a file's name begins with `/inet`. */
function isLocalFile({ text, head, plain, single }: Argument): boolean {
  if (text !== undefined) return !/inet|^-./.test(text)
  return (
    plain &&
    (single || !head.includes('=')) &&
    !head.includes('inet') &&
    (!head.startsWith('/') || head.length > 5)
  )
}

/**
 * Stricter than awk's own grammar: words and signs that could run, write or connect are not allowed even in a string.
 * `>` compares only where there are no braces around it, which is told by simple means in a simple program.
 */
function isPlainAwk(program: string): boolean {
  if (
    /(?:system|getline|close|fflush|func|ARG[VC]|ARGIND|PROCINFO|SYMTAB|FUNCTAB|BINMODE|TEXTDOMAIN)/.test(
      program,
    )
  )
    return false
  if (/@|inet|\\[\r\n]|>>|[^\n\t\x20-\x7e]/.test(program) || program.replaceAll('||', '').includes('|'))
    return false
  const compared = program.replaceAll('>=', '')
  return !compared.includes('>') || (!/["/\\#]/.test(compared) && onlyCompares(compared))
}

/** Around each `>` there are round brackets, or it stands in a pattern before the braces. */
function onlyCompares(program: string): boolean {
  let round = 0
  let curly = 0
  for (const letter of program) {
    if (letter === '(') round++
    else if (letter === ')') round--
    else if (letter === '{') curly++
    else if (letter === '}') curly--
    else if (letter === '>' && round <= 0 && curly > 0) return false
    if (round < 0 || curly < 0) return false
  }
  return true
}
