import type { Argument, Call, Rule } from '../types.ts'
import { judgeVariable } from '../variables.ts'
import { anyArguments, strangeOption, unseenArguments, withOptions } from './options.ts'

const isStatus = ({ text, head, single }: Argument): boolean =>
  text === undefined ? single && head === '0' : /^\d{1,3}$/.test(text)

/** `exit`, `break` and their kind take a number. */
const number: Rule = call => {
  if (!call.args.every(isStatus)) unseenArguments(call)
}

/** Not `-x`: it shows a prompt for every command, and prompts may run commands. */
const set: Rule = call => {
  const texts = call.args.map(argument => argument.text)
  if (texts.some(text => text === undefined)) return unseenArguments(call)
  if (!/^(?:[-+][eu]+ ?|[-+][eu]*o pipefail ?)+$/.test(texts.join(' '))) strangeOption(call)
}

const read: Rule = withOptions({
  letters: 'rs',
  valued: 'dnNt',
  free: 'p',
  operands(names, call) {
    for (const { text } of names) {
      if (text === undefined) unseenArguments(call)
      else judgeVariable(text, call.judging)
    }
  },
})

/** `command -v name` only looks; `command name …` is the same as the name alone, but for functions. */
function command(call: Call) {
  const [first] = call.args
  if (first?.text === '-v' || first?.text === '-V') return
  if (first?.text === undefined || first.text.startsWith('-')) return unseenArguments(call)
  call.judging.command(call.args, 'shell')
}

export const builtins: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  [':', anyArguments],
  ['cd', anyArguments],
  ['type', anyArguments],
  ['exit', number],
  ['return', number],
  ['break', number],
  ['continue', number],
  ['shift', number],
  ['wait', number],
  ['set', set],
  ['read', read],
  ['command', command],
])
