import type { Rule } from '../types.ts'
import { unseenArguments } from './options.ts'

/** `-v` and `%n` set a variable, and calculate its place in a list, which may run commands. All other conversions print. */
const harmlessFormat =
  /^(?:[^%]|%%|%[-+ #0']*(?:\d+|\*)?(?:\.(?:\d+|\*)?)?(?:[sdiouxXfFeEgGaAcbq]|\([^()%]*(?:%[A-Za-z][^()%]*)*\)T))*$/

export const printf: Rule = call => {
  const [format] = call.args[0]?.text === '--' ? call.args.slice(1) : call.args
  if (!format || format.text === undefined) return unseenArguments(call)
  if (format.text.startsWith('-') || !harmlessFormat.test(format.text))
    call.judging.note('hidden', 'printf sets a variable, whose place in a list the shell may run')
}
