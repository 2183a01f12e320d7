import { evasions } from './evasions.ts'
import { harmless } from './harmless.ts'
import { ordinary } from './ordinary.ts'
import { runningCurl } from './running-curl.ts'
import type { NotHarmless } from './types.ts'

export interface CorpusEntry {
  command: string
  harmless: boolean
  /** written to get past a careless check */
  evasion: boolean
  /** runs a program named curl in bash */
  runsCurl: boolean
  /** can stand between other commands and stays what it is */
  whole: boolean
}

const entries = (lists: NotHarmless, rest: Pick<CorpusEntry, 'evasion' | 'runsCurl'>): CorpusEntry[] =>
  Object.entries(lists).flatMap(([wrong, commands]) =>
    commands.map(command => ({ command, harmless: false, whole: wrong !== 'unclear', ...rest })),
  )

/** Commands and what they are; a command that is judged otherwise fails the tests. */
export const corpus: readonly CorpusEntry[] = [
  ...harmless.map(command => ({ command, harmless: true, evasion: false, runsCurl: false, whole: true })),
  ...entries(ordinary, { evasion: false, runsCurl: false }),
  ...entries(evasions, { evasion: true, runsCurl: false }),
  ...entries(runningCurl, { evasion: true, runsCurl: true }),
]
