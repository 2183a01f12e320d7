import type {
  Command,
  CommandNode,
  CompoundCommand,
  CompoundList,
  PipelineNode,
  Redirection,
  Statement,
  Word,
} from 'unbash'
import { judgeCondition } from './conditions.ts'
import { judgeRedirection } from './redirections.ts'
import type { Argument, Judging } from './types.ts'
import { judgeAssignment, judgeVariable } from './variables.ts'
import { isPlainSum, readWord } from './words.ts'

type Node = CommandNode | PipelineNode | CompoundCommand | CompoundList | Statement | Statement['command']

/** Walks through everything that would run, and through what the shell would expand on the way. */
export function judgeNode(node: Node, judging: Judging) {
  judging.deeper(() => {
    switch (node.type) {
      case 'Statement':
        return judgeNode(node.command, judging)
      case 'Pipeline':
      case 'AndOr':
      case 'CompoundList':
        for (const command of node.commands) judgeNode(command, judging)
        return
      case 'Command':
        return judgeCommand(node, judging)
      case 'Redirected':
        for (const redirection of node.redirects) judgeRedirection(redirection, judging)
        return judgeNode(node.command, judging)
      case 'If':
        for (const branch of [node, ...node.elif]) {
          judgeNode(branch.clause, judging)
          judgeNode(branch.then, judging)
        }
        if (node.else) judgeNode(node.else, judging)
        return
      case 'While':
        judgeNode(node.clause, judging)
        return judgeNode(node.body, judging)
      case 'For':
      case 'Select':
        judgeVariable(node.name.text, judging)
        for (const word of node.wordlist ?? []) readWord(word, judging)
        if (node.type === 'Select') judging.note('unknown', 'it asks for a choice')
        return judgeNode(node.body, judging)
      case 'Case':
        if (judging.substituted) judging.note('unclear', 'a choice in a command in a command')
        readWord(node.word, judging)
        for (const item of node.items) {
          for (const pattern of item.pattern) readWord(pattern, judging)
          judgeNode(item.body, judging)
        }
        return
      case 'Subshell':
        // `((` begins a calculation in some shells where others see two subshells.
        if (node.body.commands[0]?.pos === node.pos + 1 && startsWithSubshell(node.body.commands[0]))
          judging.note('unclear', 'two brackets that shells read differently')
        return judgeNode(node.body, judging)
      case 'BraceGroup':
        return judgeNode(node.body, judging)
      case 'TestCommand':
        return judgeCondition(node.expression, judging)
      case 'ArithmeticCommand':
        if (!isPlainSum(node.body))
          judging.note('hidden', 'it calculates with variables, whose text the shell may run')
        return
      case 'ArithmeticFor':
        judging.note('hidden', 'it calculates with variables, whose text the shell may run')
        return judgeNode(node.body, judging)
      case 'Function':
        judging.note('hidden', 'it gives a name of its own to commands')
        return judgeNode(node.body, judging)
      case 'Coproc':
        judging.note('hidden', 'it leaves a command running that it talks to')
        return judgeNode(node.body, judging)
      default:
        judging.note('unclear', 'a part of it could not be read')
    }
  })
}

function startsWithSubshell(node: Node | undefined): boolean {
  switch (node?.type) {
    case 'Subshell':
    case 'ArithmeticCommand':
      return true
    case 'Statement':
    case 'Redirected':
      return startsWithSubshell(node.command)
    case 'Pipeline':
    case 'AndOr':
      return startsWithSubshell(node.commands[0])
    default:
      return false
  }
}

function judgeCommand(command: Command, judging: Judging) {
  const words: Argument[] = command.name ? [readWord(command.name, judging)] : []
  const name = command.name?.text
  for (const part of command.prefix) {
    if (part.type === 'Assignment') {
      if (part.index) readWord(part.index, judging)
      judgeAssignment(part, readValue(part.value, judging), name, judging)
    } else judgeRedirection(part, judging)
  }
  for (const part of command.suffix) {
    if (part.type === 'Word') words.push(readWord(part, judging))
    else if (part.type === 'Assignment') {
      // Only builtins that set variables get these, and none of them is harmless.
      if (part.index) readWord(part.index, judging)
      const value = readValue(part.value, judging)
      words.push({
        text: undefined,
        head: `${part.name}=`,
        single: value !== undefined,
        plain: true,
        bare: false,
      })
    } else judgeRedirection(part satisfies Redirection, judging)
  }
  if (wordsTouch(command)) judging.note('unclear', 'where a word ends is not certain')
  if (words.length > 0) judging.command(words, 'shell')
}

/** Two words without a blank between them are one word to bash, whatever the parser says. */
function wordsTouch({ prefix, name, suffix }: Command): boolean {
  const parts = [...prefix, ...(name ? [name] : []), ...suffix]
  const words = parts.filter(part => part.type === 'Word' || part.type === 'Assignment')
  return words.some((word, place) => word.end === words[place + 1]?.pos)
}

function readValue(value: Word | { type: 'ArrayValue'; elements: readonly Word[] }, judging: Judging) {
  if (value.type === 'Word') return readWord(value, judging)
  for (const element of value.elements) readWord(element, judging)
  return undefined
}
