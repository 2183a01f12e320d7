import type { ParsedScript } from 'unbash'

/** From the best to the worst; a command is as bad as the worst thing in it. */
export const shellClasses = ['harmless', 'unknown', 'network', 'hidden', 'unclear'] as const

/**
 * - `harmless`: every command in it is known, and with these very arguments stays offline and runs nothing unseen
 * - `unknown`: a program, or a use of one, that is not on the list
 * - `network`: something that can reach a network
 * - `hidden`: runs, or may run, code that cannot be read in the command
 * - `unclear`: not understood as a whole: broken, too long, too deep, too intricate
 */
export type ShellClass = (typeof shellClasses)[number]

export interface ShellVerdict {
  class: ShellClass
  /** plain sentences; they name programs and quote nothing else of the command */
  reasons: string[]
  /** every program and builtin it would run, as far as that can be told */
  programs: string[]
}

/** A word of a command, as far as it is known before the command runs. */
export interface Argument {
  /** the very text the program will get; undefined if that is decided later */
  readonly text: string | undefined
  /** what it begins with in any case */
  readonly head: string
  /** becomes exactly one word */
  readonly single: boolean
  /** no word that comes of it begins with a dash, so a program cannot take it for an option */
  readonly plain: boolean
  /** written without quotes or escapes, in visible ASCII */
  readonly bare: boolean
}

/** Who looks a program's name up: a shell knows builtins, another program does not. */
export type Runner = 'shell' | 'program'

/** One command about to be judged. */
export interface Call {
  readonly name: string
  readonly args: readonly Argument[]
  readonly by: Runner
  readonly judging: Judging
}

/** Notes what is wrong with a call. A call about which nothing is noted is harmless. */
export type Rule = (call: Call) => void

/** What all parts of the judgement share: the place for findings, and the ways back in for what is nested. */
export interface Judging {
  /** the text that is being judged; places in the parsed tree are places in it */
  readonly source: string
  /** inside `$(…)`, backticks or `<(…)` */
  readonly substituted: boolean
  note(found: Exclude<ShellClass, 'harmless'>, reason: string): void
  ran(program: string): void
  /** a command that another command runs; its name is the first word */
  command(words: readonly Argument[], by: Runner): void
  /** shell text that another command runs */
  script(text: string): void
  /** an already parsed substitution */
  substitution(script: ParsedScript | undefined): void
  /** one level further in, unless that is too deep */
  deeper(work: () => void): void
}
