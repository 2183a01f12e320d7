import { type ParsedScript, parse } from 'unbash'
import { judgeCall } from './calls.ts'
import { judgeNode } from './statements.ts'
import { type Judging, type ShellClass, type ShellVerdict, shellClasses } from './types.ts'

export interface ShellLimits {
  /** characters; what is longer is not read at all */
  length?: number
}

/** The parser's time grows with the square of these, and nobody needs so many in a command that could be harmless. */
const most = { length: 10_000, brackets: 150, depth: 40, reasons: 12, programs: 60 }

/**
 * Whatever a shell command could hide from a reader: control characters, blanks that are no blanks, marks that change the
 * direction of writing or take no room, halves of characters.
 */
const invisible = /[^\P{C}\n\t]|(?! )\p{Z}|(?![\ufe0e\ufe0f])\p{DI}|\u2800/u

/**
 * What a bash command would do, told from its text alone. Everything that is not positively known is not harmless, and
 * the same text always gets the same verdict.
 */
export function judgeShell(command: string, limits: ShellLimits = {}): ShellVerdict {
  const found = new Set<ShellClass>(['harmless'])
  const reasons = new Set<string>()
  const programs = new Set<string>()
  let depth = 0
  let substitutions = 0
  let source = ''

  const judging: Judging = {
    get source() {
      return source
    },
    get substituted() {
      return substitutions > 0
    },
    note(kind, reason) {
      found.add(kind)
      if (reasons.size < most.reasons) reasons.add(reason)
    },
    ran(program) {
      if (programs.size < most.programs) programs.add(program)
    },
    command(words, by) {
      judging.deeper(() => judgeCall(words, by, judging))
    },
    script(text) {
      const outside = { substitutions, source }
      substitutions = 0
      judging.deeper(() => judgeText(text))
      substitutions = outside.substitutions
      source = outside.source
    },
    substitution(script) {
      substitutions++
      judging.deeper(() => judgeTree(script))
      substitutions--
    },
    deeper(work) {
      if (depth >= most.depth) return judging.note('unclear', 'it is nested too deeply')
      depth++
      work()
      depth--
    },
  }

  function judgeText(text: string) {
    if (text.length > (limits.length ?? most.length))
      return judging.note('unclear', 'it is too long to judge')
    if (invisible.test(text)) return judging.note('unclear', 'there are characters in it that cannot be seen')
    if (countBrackets(text) > most.brackets)
      return judging.note('unclear', 'there are too many brackets in it')
    // Between two letters of one word or sign, shells and parsers do not agree on what the parts become.
    if (/[^ \t]\\\n/.test(text)) return judging.note('unclear', 'a line goes on in the middle of a word')
    source = text
    // A word may go on with `#` after `<(…)`; the parser takes it for a comment and does not see what follows.
    if (text.includes(')#')) return judging.note('unclear', 'where a comment begins is not certain')
    judgeTree(parse(text))
  }

  function judgeTree(script: ParsedScript | undefined): void {
    if (!script || script.errors?.length) judging.note('unclear', 'it is not a complete shell command')
    for (const statement of script?.commands ?? []) judgeNode(statement, judging)
  }

  try {
    judgeText(command)
  } catch {
    // The parser gave up, most likely for lack of stack. Whatever it was, it was not understood.
    judging.note('unclear', 'it could not be read')
  }
  return {
    class: shellClasses.findLast(kind => found.has(kind)) ?? 'unclear',
    reasons: [...reasons],
    programs: [...programs],
  }
}

function countBrackets(text: string): number {
  let count = 0
  for (let at = 0; at < text.length; at++) if ('({[`<'.includes(text.charAt(at))) count++
  return count
}
