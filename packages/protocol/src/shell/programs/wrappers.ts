import { beginningWith, unseen } from '../arguments.ts'
import type { Argument, Call } from '../types.ts'
import { isHarmlessEnvironment } from '../variables.ts'
import { strangeOption, unseenArguments } from './options.ts'

/** The rest of the words is a command of its own. */
const inner = (call: Call, from: number): void => call.judging.command(call.args.slice(from), 'program')

export function env(call: Call) {
  let at = 0
  for (; at < call.args.length; at++) {
    const { text, head, single } = call.args[at] as Argument
    if (text === undefined && !(single && head.includes('='))) return unseenArguments(call)
    if (text?.startsWith('-')) {
      call.judging.note('hidden', 'env is used with an option that is not on the list')
      continue
    }
    const [, name] = /^([^=]*)=/.exec(head) ?? []
    if (name === undefined) break
    if (!isHarmlessEnvironment(name, text?.slice(name.length + 1)))
      call.judging.note('hidden', 'it sets a variable that may decide what runs')
  }
  if (at < call.args.length) inner(call, at)
}

export function timeout(call: Call) {
  const at = skip(
    call,
    /^(?:--preserve-status|--foreground|-v|--kill-after=[\d.]+[smhd]?|--signal=\w+)$/,
    /^-[ks]$/,
  )
  if (at === undefined) return
  if (!/^[\d.]+[smhd]?$/.test(call.args[at]?.text ?? '')) return unseenArguments(call)
  inner(call, at + 1)
}

export function nice(call: Call) {
  const at = skip(call, /^(?:-n-?\d+|-\d+|--adjustment=-?\d+)$/, /^-n$/)
  if (at !== undefined && at < call.args.length) inner(call, at)
}

export const nohup = (call: Call): void => inner(call, 0)

export function stdbuf(call: Call) {
  const at = skip(call, /^-[ioe](?:0|L|\d+[KMG]?)$/, /^-[ioe]$/)
  if (at !== undefined) inner(call, at)
}

/** What it reads becomes arguments, whatever they are; the command has to be harmless with any. */
export function xargs(call: Call) {
  let at = 0
  let place: string | undefined
  for (; at < call.args.length; at++) {
    const { text } = call.args[at] as Argument
    if (text === undefined) return unseenArguments(call)
    if (!text.startsWith('-')) break
    if (
      /^(?:-[0rtx]+|-[nLPs]\d+|--null|--no-run-if-empty|--verbose|--max-(?:args|procs|lines)=\d+)$/.test(text)
    )
      continue
    if (/^-d./.test(text) || /^--delimiter=/.test(text)) continue
    if (/^-(?:[0rtx]*[nLPs]|d)$/.test(text)) {
      const value = call.args[++at]?.text
      if (value === undefined || !(text === '-d' || /^\d+$/.test(value))) return unseenArguments(call)
      continue
    }
    if (!/^-[0rtx]*I/.test(text)) return strangeOption(call)
    place = text.slice(text.indexOf('I') + 1)
    if (place === '') place = call.args[++at]?.text
    if (!place) return unseenArguments(call)
  }
  const words = call.args.slice(at)
  if (words.length === 0) return
  call.judging.command(
    place === undefined ? [...words, unseen] : words.map(word => withPlace(word, place)),
    'program',
  )
}

function withPlace(word: Argument, place: string): Argument {
  if (word.text === undefined) return unseen
  const at = word.text.indexOf(place)
  return at < 0 ? word : beginningWith(word.text.slice(0, at))
}

/** Where the options end, or undefined if one of them is not known. */
function skip(call: Call, alone: RegExp, valued: RegExp): number | undefined {
  for (let at = 0; ; at++) {
    const argument = call.args[at]
    if (argument?.text === undefined || !argument.text.startsWith('-')) return at
    if (valued.test(argument.text)) {
      at++
      if (!/^[\w.-]+$/.test(call.args[at]?.text ?? '')) {
        unseenArguments(call)
        return undefined
      }
    } else if (!alone.test(argument.text)) {
      strangeOption(call)
      return undefined
    }
  }
}
