/**
 * Files that cross a trust boundary, without meaning. An *inbox* is one writer's set of directories ("drops"); whose
 * inbox a file lies in is the only thing that says who wrote it (promise 2).
 *
 * A file's states are directories, so that `ls` shows them:
 *
 *   written      ipc/{inbox}/{drop}/{name}.json.tmp     the writer's
 *   posted       ipc/{inbox}/{drop}/{name}.json         the writer's until it is claimed
 *   claimed      spool/{n}/{seq}~{inbox}~{drop}~{name}  ours: renamed out of the writer's reach, then read
 *   gone         the consumer has stored what it asks for, and removed it
 *   quarantined  errors/{inbox}-{id}-{name}.error       with `.error.json` beside it: why
 */
export interface Inbox {
  /** letters, digits, `-` and `_`; part of the claimed file's name */
  id: string
  /** the directory that holds the drops */
  path: string
  /** names of the subdirectories to take files from */
  drops: readonly string[]
  /** those of them in which nothing is in a hurry: looked into when swept, without a watch of their own */
  sweptOnly?: readonly string[]
}

/** Why a file is not read. Decided from the outside of the file alone. */
export type Problem = 'bad_name' | 'not_a_file' | 'too_large' | 'invalid_utf8' | 'unreadable'

export interface ClaimedFile {
  /** rises by one for each claim; never used twice in the life of a data directory */
  seq: number
  inbox: string
  drop: string
  /** the name it was posted under (made harmless where `problem` is `bad_name`) */
  name: string
  /** where it lies now */
  path: string
  inode: number
  mtimeUs: number
  size: number
  text: string
  problem: Problem | undefined
  /** handed over before, by this process or an earlier one; the consumer's journal knows whether it was taken */
  recovered: boolean
  /** may still be growing: a writer that does not rename gets a short grace (promise 1) */
  mayGrow: boolean
}

export type WatchMode = 'events' | 'polling'

/** Things an operator wants to know about a directory. Each is reported when it begins, not again and again. */
export type ReportKind =
  | 'missing'
  | 'appeared'
  | 'replaced'
  | 'not_a_directory'
  | 'unreadable'
  | 'unclaimable'
  | 'claimable'
  | 'watch_refused'
  | 'missed_event'
  | 'noisy'
  | 'mode'
  | 'shed'
  | 'littered'
  | 'not_removed'
  | 'consumer_failed'

export interface Report {
  kind: ReportKind
  inbox?: string
  drop?: string
  /** what happened and what to do, in a sentence */
  message: string
  mode?: WatchMode
  /** how many files, for `shed` */
  count?: number
}

export interface Owner {
  uid: number
  gid: number
}
