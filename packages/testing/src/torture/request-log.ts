import type { Folder } from './testbed.ts'

/**
 * Everything that was asked of the system, and what was heard of it, kept outside of it. Each thing has a word of its
 * own that is found again wherever it has had an effect.
 */
export type Kind =
  /** to a service, which may be asked again after a crash, or must not be */
  | 'note_again'
  | 'note_once'
  /** the same, but a person has to allow it */
  | 'publish_again'
  | 'publish_once'
  | 'todo'
  | 'memory'
  | 'message'
  | 'file'
  /** scheduled runs of another group, which a person has to allow where whoever asks has secrets */
  | 'once'
  | 'interval'
  | 'cron'
  /** a command on the host, on a schedule, which a person has to allow */
  | 'job'

export interface Asked {
  id: string
  kind: Kind
  folder: Folder
  word: string
  /** as it lay in the group's directory */
  body: string
  /** what the person is going to say, where one is asked */
  wish: 'allow' | 'deny' | 'leave' | undefined
  /** the answer, as it lay there first */
  answer: Answer | undefined
}

interface Answer {
  ok: boolean
  code: string | undefined
}

interface Said {
  word: string
  folder: 'ann' | 'bob'
  /** the host has said that it has it */
  isTaken: boolean
}

export interface RequestLog {
  said: Said[]
  asked: Asked[]
  /** another answer than the first one */
  contradictions: string[]
  /** what the API refused, by status and code */
  refusals: Map<string, number>
  word(letter: string): string
}

export function openRequestLog(): RequestLog {
  let count = 0
  return {
    said: [],
    asked: [],
    contradictions: [],
    refusals: new Map(),
    word: letter => `${letter}${String(++count).padStart(5, '0')}`,
  }
}

export const isTask = ({ kind }: Pick<Asked, 'kind'>): boolean =>
  kind === 'once' || kind === 'interval' || kind === 'cron'
/** Decided by a person before it happens: all that is asked where there are secrets goes out. */
export const isHeld = ({ folder }: Asked): boolean => folder === 'office' || folder === 'vault'
