import type { ShellClass } from '../types.ts'
import { evasions } from './evasions.ts'
import { harmless } from './harmless.ts'
import { ordinary } from './ordinary.ts'
import { runningCurl } from './running-curl.ts'
import type { Judged } from './types.ts'

export interface CorpusEntry {
  command: string
  expected: ShellClass
  /** written to get past a careless check */
  evasion: boolean
  /** runs a program named curl in bash */
  runsCurl: boolean
}

const entries = (lists: Judged, rest: Pick<CorpusEntry, 'evasion' | 'runsCurl'>): CorpusEntry[] =>
  (['unknown', 'network', 'hidden', 'unclear'] as const).flatMap(expected =>
    (lists[expected] ?? []).map(command => ({ command, expected, ...rest })),
  )

/** Commands and what they are; a command that is judged otherwise fails the tests. */
export const corpus: readonly CorpusEntry[] = [
  ...harmless.map(command => ({ command, expected: 'harmless' as const, evasion: false, runsCurl: false })),
  ...entries(ordinary, { evasion: false, runsCurl: false }),
  ...entries(evasions, { evasion: true, runsCurl: false }),
  ...entries(runningCurl, { evasion: true, runsCurl: true }),
]
