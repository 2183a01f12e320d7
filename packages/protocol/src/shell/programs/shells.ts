import type { Call } from '../types.ts'

/** `bash -c '…'` runs the text; what follows are only the values of `$0`, `$1`, … Login shells read files first. */
export const bash = (call: Call): void => runsText(call, /^/)

/**
 * What other shells make of a text is told by bash's grammar only where all shells agree: words, quotes, pipes and
 * lists.
 */
export const plainShell = (call: Call): void => runsText(call, /^(?:[\w\s./,:=+@%'"|;*?-]|&&)*$/)

function runsText({ name, args, judging }: Call, understood: RegExp) {
  const [option, text] = args
  if (!/^-[eu]*c$/.test(option?.text ?? '') || text?.text === undefined)
    return judging.note('hidden', `${name} runs code or commands that cannot be seen here`)
  if (!understood.test(text.text)) judging.note('hidden', `${name} may read its text differently`)
  // An option may follow `-c`, and the text is then the word after it.
  if (/^[-+]/.test(text.text))
    judging.note('hidden', `${name} is used with an option that is not on the list`)
  judging.script(text.text)
}
