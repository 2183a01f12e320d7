import type { TestExpression, Word } from 'unbash'
import type { Call, Judging } from './types.ts'
import { readWord } from './words.ts'

const comparesNumbers = /^-(?:eq|ne|lt|le|gt|ge)$/
const comparesStrings = /^(?:==?|!=|<|>|-nt|-ot|-ef)$/
/** Not `-v` and `-R`: they calculate the place in a list, and what is calculated may run. */
const asksOne = /^-[abcdefghknoprstuwxzGLNOS]$/

const mayRun = 'a condition calculates with text that the shell may run'

/** `[[ … ]]` calculates with both sides of a numeric comparison, so they have to be numbers already. */
export function judgeCondition(expression: TestExpression, judging: Judging) {
  judging.deeper(() => {
    switch (expression.type) {
      case 'TestLogical':
        for (const operand of expression.operands) judgeCondition(operand, judging)
        return
      case 'TestNot':
        return judgeCondition(expression.operand, judging)
      case 'TestGroup':
        return judgeCondition(expression.expression, judging)
      case 'TestUnary':
        readWord(expression.operand, judging)
        if (!asksOne.test(expression.operator)) judging.note('hidden', mayRun)
        if (expression.operator === '-t' && !/^\d$/.test(expression.operand.text))
          judging.note('hidden', mayRun)
        return
      case 'TestBinary':
        return judgeComparison(expression.operator, expression.left, expression.right, judging)
      default:
        judging.note('unclear', 'a condition could not be read')
    }
  })
}

function judgeComparison(operator: string, left: Word, right: Word, judging: Judging) {
  readWord(left, judging)
  readWord(right, judging)
  if (comparesNumbers.test(operator)) {
    if (![left, right].every(word => /^(?:-?\d+|\$[#?])$/.test(word.text))) judging.note('hidden', mayRun)
  } else if (operator === '=~') {
    if (/[()<>&;|`]/.test(right.text)) judging.note('unclear', 'a pattern is too intricate to judge')
  } else if (!comparesStrings.test(operator)) judging.note('unclear', 'a condition could not be read')
}

/** `[ … ]` and `test`: an operator that is not written out could be one that calculates. */
export function judgeTest({ name, args, judging }: Call) {
  let words = args
  if (name === '[') {
    if (words.at(-1)?.text !== ']') return judging.note('unclear', 'a condition has no end')
    words = words.slice(0, -1)
  }
  if (words.every(word => word.text !== undefined && !/^-[vR]$/.test(word.text))) return
  if (words[0]?.text === '!') words = words.slice(1)
  const [first, second] = words
  const known =
    words.every(word => word.single) &&
    (words.length === 1 ||
      (words.length === 2 && asksOne.test(first?.text ?? '')) ||
      (words.length === 3 &&
        (comparesNumbers.test(second?.text ?? '') || comparesStrings.test(second?.text ?? ''))))
  if (!known) judging.note('hidden', mayRun)
}
