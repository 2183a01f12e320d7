import type {
  ArithmeticExpansionPart,
  CommandExpansionPart,
  DoubleQuotedChild,
  ParameterExpansionPart,
  ProcessSubstitutionPart,
  Word,
  WordPart,
} from 'unbash'
import type { Argument, Judging } from './types.ts'
import { judgeVariable } from './variables.ts'

/** What is known of a word that is still being put together. */
interface Draft {
  /** known so far, from the beginning */
  head: string
  /** all of it is known so far */
  exact: boolean
  single: boolean
  /** later words may begin with anything */
  splits: boolean
  /** a home directory stands at its beginning */
  home: boolean
}

/** Reads a word, and judges what runs while the shell expands it. */
export function readWord(word: Word, judging: Judging): Argument {
  const draft: Draft = { head: '', exact: true, single: true, splits: false, home: false }
  if (word.parts) for (const part of word.parts) addPart(draft, part, judging)
  else if (isPlaceholder(word.text)) addKnown(draft, word.value)
  else addUnquoted(draft, word.text, word.value, judging)
  const last = word.parts?.at(-1)
  if (word.parts?.some(part => part !== last && part.type === 'Literal' && part.text.endsWith('$')))
    judging.note('unclear', overlooked)
  const { head, exact, single, splits, home } = draft
  return {
    text: exact ? head : undefined,
    head,
    single,
    plain: exact ? !head.startsWith('-') : !splits && (head === '' ? home : !head.startsWith('-')),
    bare: exact && head === word.text && /^[\x21-\x7e]+$/.test(head),
  }
}

/** Judges the expansions in the text of a here-document, where quotes mean nothing. */
export function judgeHereText(text: string, parts: readonly WordPart[] | undefined, judging: Judging) {
  const draft: Draft = { head: '', exact: true, single: true, splits: false, home: false }
  if (!parts) judgeQuotedText(text, judging)
  for (const part of parts ?? []) {
    if (part.type === 'Literal') judgeQuotedText(part.text, judging)
    else addPart(draft, part, judging)
  }
}

const overlooked = 'something in it may have been overlooked'

/** What the parser calls plain text must not hold anything that the shell would expand: then one of them is mistaken. */
function judgeQuotedText(text: string, judging: Judging) {
  if (/`|\$[\w({@*#?$!-]/.test(text.replace(/\\[\s\S]/g, '')) || /\$\\\n/.test(text))
    judging.note('unclear', overlooked)
}

function judgeUnquotedText(text: string, judging: Judging) {
  if (/[<>()|&;`'"\s]|\$[\w({['"@*#?$!-]/.test(text.replace(/\\[\s\S]/g, '')))
    judging.note('unclear', overlooked)
}

function addPart(draft: Draft, part: WordPart, judging: Judging) {
  switch (part.type) {
    case 'Literal':
      return addUnquoted(draft, part.text, part.value, judging)
    case 'SingleQuoted':
      return addKnown(draft, part.value)
    case 'AnsiCQuoted':
      if (!/^\$'(?:[^\\']|\\[nt\\])*'$/.test(part.text))
        judging.note('hidden', 'text is written in escapes that hide it')
      return addKnown(draft, part.value)
    case 'LocaleString':
      judging.note('hidden', 'a translated string may become something else when it runs')
      for (const child of part.parts) addQuoted(draft, child, judging)
      return addUnknown(draft, 'split')
    case 'DoubleQuoted':
      for (const child of part.parts) addQuoted(draft, child, judging)
      return
    case 'Glob':
      addUnknown(draft, 'several')
      for (const child of part.parts ?? []) addPart(draft, child, judging)
      if (/[$`\\]/.test(part.text)) judging.note('unclear', 'a file pattern is too intricate to judge')
      return
    case 'BraceExpansion':
      addUnknown(draft, 'several')
      for (const child of part.parts ?? []) addPart(draft, child, judging)
      if (/[$`<>\\]/.test(part.text)) judging.note('unclear', 'a list in braces is too intricate to judge')
      return
    case 'ExtendedGlob':
      addUnknown(draft, 'split')
      for (const child of part.parts ?? []) addPart(draft, child, judging)
      return judging.note('unclear', 'a file pattern that shells read differently')
    case 'ProcessSubstitution':
      judgeSubstitution(part, judging)
      // The word becomes the name of a pipe.
      addKnown(draft, '/dev/fd/')
      return addUnknown(draft, 'one')
    case 'SimpleExpansion':
      return addUnknown(draft, /^\$[?#$]$/.test(part.text) ? 'number' : 'split')
    case 'ParameterExpansion':
      judgeParameter(part, judging)
      return addUnknown(draft, part.prefix === '#' ? 'number' : 'split')
    case 'ArithmeticExpansion':
      judgeArithmetic(part, judging)
      return addUnknown(draft, 'one')
    case 'CommandExpansion':
      judgeSubstitution(part, judging)
      return addUnknown(draft, 'split')
    default:
      judging.note('unclear', 'a word could not be read')
      return addUnknown(draft, 'split')
  }
}

function addQuoted(draft: Draft, part: DoubleQuotedChild, judging: Judging) {
  if (part.type === 'Literal') {
    judgeQuotedText(part.text, judging)
    return addKnown(draft, part.value)
  }
  const before = { single: draft.single, splits: draft.splits }
  addPart(draft, part, judging)
  if (becomesSeveral(part)) return
  draft.single = before.single
  draft.splits = before.splits
}

/** `"$@"` and `"${name[@]}"` are several words although they are quoted. */
function becomesSeveral(part: DoubleQuotedChild): boolean {
  if (part.type === 'SimpleExpansion') return part.text === '$@'
  if (part.type !== 'ParameterExpansion' || part.prefix === '#') return false
  return (
    part.prefix === '!' || /^[@*]$/.test(part.parameter) || part.index !== undefined || /.\$/.test(part.text)
  )
}

function addKnown(draft: Draft, text: string) {
  if (draft.exact) draft.head += text
}

/** Text without quotes: the shell may still make file names, lists or a home directory of it. */
function addUnquoted(draft: Draft, text: string, value: string, judging: Judging) {
  judgeUnquotedText(text, judging)
  const special = firstSpecial(text)
  if (special < 0) return addKnown(draft, value)
  // What becomes of it is not known, but it is a path, or stays as it is if there is no such user.
  if (text.startsWith('~') && draft.exact && draft.head === '') {
    draft.home = true
    return addUnknown(draft, firstSpecial(text.slice(1)) < 0 ? 'one' : 'several')
  }
  addKnown(
    draft,
    text.slice(0, special).replace(/\\([\s\S])/g, (_, next) => (next === '\n' ? '' : next)),
  )
  addUnknown(draft, 'several')
}

/** `{}` in a word of plain letters stays what it is; find and xargs want it. `[` is the name of a program. */
const isPlaceholder = (text: string): boolean =>
  text === '[' || /^[\w./:=,%+@-]*\{\}[\w./:=,%+@-]*$/.test(text)

/** Where an unescaped pattern, list in braces or home directory begins. */
function firstSpecial(text: string): number {
  for (let at = 0; at < text.length; at++) {
    const letter = text.charAt(at)
    if (letter === '\\') at++
    else if ('*?[{'.includes(letter)) return at
    else if (letter === '~' && (at === 0 || '=:'.includes(text.charAt(at - 1)))) return at
  }
  return -1
}

function addUnknown(draft: Draft, becomes: 'one' | 'number' | 'several' | 'split') {
  // Not empty, not negative, and with the usual IFS it stays whole.
  if (becomes === 'number') addKnown(draft, '0')
  draft.exact = false
  if (becomes === 'several' || becomes === 'split') draft.single = false
  if (becomes === 'split') draft.splits = true
}

/**
 * Shells of different age disagree about where a substitution ends when there are comments, `case` or here-documents in
 * it, and about `$((`. Where they could disagree, nobody knows what would run.
 */
function judgeSubstitution(part: CommandExpansionPart | ProcessSubstitutionPart, judging: Judging) {
  if (part.type === 'ProcessSubstitution') judgePipe(part, judging)
  if (part.text.startsWith('`') ? /[\\'"#]/.test(part.text) : !/^(?:\$\(|[<>]\()(?!\()/.test(part.text))
    judging.note('unclear', 'a command in a command is too intricate to judge')
  else if (/[\s;&|()]#/.test(part.text))
    judging.note('unclear', 'there is a comment in a command in a command')
  judging.substitution(part.script)
}

/** The parser ends a word before and after `<(…)` where bash goes on with it, so there has to be a blank. */
function judgePipe({ operator, text, pos, end, script }: ProcessSubstitutionPart, { source, note }: Judging) {
  if (operator === '>') note('hidden', 'output goes to a command in a way that is not followed')
  const around = `${source.charAt(pos - 1)}|${source.charAt(end)}`
  if (!script?.commands.length || source.slice(pos, end) !== text || !/^\s?\|[\s;&|)]?$/.test(around))
    note('unclear', 'a command in a command is too intricate to judge')
}

/** The shell runs what it finds in a variable that it calculates with, so only numbers are calculated with. */
function judgeArithmetic(part: ArithmeticExpansionPart, judging: Judging) {
  if (!isPlainSum(part.text.replace(/^\$\(\(|\)\)$/g, '')))
    judging.note('hidden', 'it calculates with variables, whose text the shell may run')
}

export const isPlainSum = (text: string): boolean => /^[\s\d+\-*/%()<>=!&|^~?:,]*$/.test(text)

function judgeParameter(part: ParameterExpansionPart, judging: Judging) {
  const { index, operation } = part
  if (part.prefix === '!') judging.note('hidden', 'it uses a variable whose name is decided when it runs')
  if (index && !/^(?:[@*]|\d+)$/.test(index.text))
    judging.note('hidden', 'it calculates a place in a list, which the shell may run')
  const words: Word[] = []
  switch (operation?.type) {
    case undefined:
      break
    case 'Default':
      if (operation.operator.endsWith('=')) judgeVariable(part.parameter, judging)
      words.push(operation.operand)
      break
    case 'Remove':
      words.push(operation.operand)
      break
    case 'Replace':
      words.push(operation.pattern, operation.replacement)
      break
    case 'CaseModification':
      if (operation.operand) words.push(operation.operand)
      break
    case 'Slice':
      words.push(operation.offset, ...(operation.length ? [operation.length] : []))
      if (words.some(word => !/^\s*-?\d+$/.test(word.text)))
        judging.note('hidden', 'it calculates with variables, whose text the shell may run')
      break
    case 'Transform':
      if (!/^[QULu]$/.test(operation.operand.text))
        judging.note('hidden', 'it uses the text of a variable as a prompt, which may run commands')
      words.push(operation.operand)
      break
    default:
      judging.note('unclear', 'an expansion could not be read')
  }
  for (const word of words) {
    if (!/^(?:[\w .,:=@%+*?/#~^-]|\$\w+)*$/.test(word.text))
      judging.note('unclear', 'an expansion is too intricate to judge')
    judging.deeper(() => readWord(word, judging))
  }
}
