import type { Argument } from './types.ts'

/** Any number of words of which nothing is known. */
export const unseen: Argument = { text: undefined, head: '', single: false, plain: false, bare: false }

/** One word that begins with `head`; the rest is decided when the command runs. */
export const beginningWith = (head: string, plain = head !== '' && !head.startsWith('-')): Argument => ({
  text: undefined,
  head,
  single: true,
  plain,
  bare: false,
})

/** A program takes it for a file, or its like, in any case. */
export const isOperand = (argument: Argument): boolean =>
  argument.text === undefined
    ? argument.plain
    : argument.text === '-' || argument.text === '' || !argument.text.startsWith('-')
