import { isOperand } from '../arguments.ts'
import { judgeWrite } from '../redirections.ts'
import type { Argument, Call } from '../types.ts'
import { strangeOption, unseenArguments } from './options.ts'

/** sed with a script that can be read here, and is nothing but editing. */
export function sed(call: Call) {
  const { args, judging } = call
  const scripts: (string | undefined)[] = []
  const operands: Argument[] = []
  let inPlace = false
  for (let at = 0; at < args.length; at++) {
    const argument = args[at] as Argument
    const { text } = argument
    if (text === '--') {
      operands.push(...args.slice(at + 1))
      break
    }
    if (isOperand(argument)) operands.push(argument)
    else if (text === undefined) return unseenArguments(call)
    else if (/^-[nErsuz]*e$/.test(text)) scripts.push(args[++at]?.text)
    else if (/^-[nErsuz]*e/.test(text)) scripts.push(text.slice(text.indexOf('e') + 1))
    else if (text.startsWith('--expression=')) scripts.push(text.slice('--expression='.length))
    else if (/^(?:-[nErsuz]*i|--in-place)$/.test(text)) inPlace = true
    else if (/^(?:-[nErsuz]*f|--f)/.test(text))
      return judging.note('hidden', 'what sed is told to do is in a file that cannot be seen here')
    else if (!/^(?:-[nErsuz]+|--(?:quiet|silent|regexp-extended|null-data|unbuffered|separate))$/.test(text))
      return strangeOption(call)
  }
  if (scripts.length === 0) scripts.push(operands.shift()?.text)
  if (scripts.some(script => script === undefined))
    return judging.note('hidden', 'what sed is told to do is decided only when it runs')
  if (!isPlainEditing(scripts.join('\n')))
    judging.note('hidden', 'sed is told to do something that is not plain editing')
  if (!inPlace) return
  for (const { text } of operands) {
    if (text === undefined) unseenArguments(call)
    else judgeWrite(text, judging)
  }
}

/** Nothing that runs (`e`, `s///e`), writes (`w`, `s///w`) or reads other files (`r`). */
function isPlainEditing(script: string): boolean {
  let rest = script
  const take = (pattern: RegExp): string | undefined => {
    const found = pattern.exec(rest)?.[0]
    if (found !== undefined) rest = rest.slice(found.length)
    return found
  }
  for (;;) {
    take(/^[\s;]+/)
    if (rest === '') return true
    if (!takeAddresses()) return false
    take(/^[ \t]*(?:![ \t!]*)?/)
    const command = rest.charAt(0)
    rest = rest.slice(1)
    if (command === 's') {
      const mark = takeMark()
      if (mark === undefined || !takeUntil(mark) || !takeUntil(mark)) return false
      if (take(/^[gpiImM0-9]*(?=[ \t]*(?:[;\n}]|$))/) === undefined) return false
    } else if (command === 'y') {
      const mark = takeMark()
      if (mark === undefined || !takeUntil(mark) || !takeUntil(mark)) return false
      if (!/^[ \t]*(?:[;\n}]|$)/.test(rest)) return false
    } else if ('aic'.includes(command) && command !== '') {
      if (take(/^[ \t]*[^\s\\][^\n\\]*(?=\n|$)/) === undefined) return false
    } else if ('btT:'.includes(command) && command !== '') {
      if (take(/^[ \t]*\w*[ \t]*(?=[;\n]|$)/) === undefined) return false
    } else if ('qQl'.includes(command) && command !== '') {
      if (take(/^[ \t]*\d*[ \t]*(?=[;\n}]|$)/) === undefined) return false
    } else if (command !== '{') {
      if (command === '' || !'pdPDgGhHnNxz=F}'.includes(command)) return false
      if (!/^[ \t]*(?:[;\n}]|$)/.test(rest)) return false
    }
  }

  function takeAddresses(): boolean {
    if (!takeAddress()) return true
    if (take(/^[ \t]*,[ \t]*/) === undefined) return true
    return take(/^[+~]\d+/) !== undefined || takeAddress()
  }

  function takeAddress(): boolean {
    if (take(/^(?:\d+(?:~\d+)?|\$)/) !== undefined) return true
    if (!rest.startsWith('/')) return false
    rest = rest.slice(1)
    if (!takeUntil('/')) return false
    take(/^[IM]+/)
    return true
  }

  function takeMark(): string | undefined {
    return take(/^[/|#,:@!%_+~=]/)
  }

  /** Up to and with the mark. Versions of sed disagree about a mark in square brackets, so there must be none. */
  function takeUntil(mark: string): boolean {
    let bracketed = false
    for (let at = 0; at < rest.length; at++) {
      const letter = rest.charAt(at)
      if (letter === '\n') return false
      if (letter === '\\') at++
      else if (letter === mark) {
        if (bracketed) return false
        rest = rest.slice(at + 1)
        return true
      } else if (letter === '[') {
        bracketed = true
        if (/^\^?\]/.test(rest.slice(at + 1, at + 3))) return false
      } else if (letter === ']') bracketed = false
    }
    return false
  }
}
