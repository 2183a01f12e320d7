/**
 * An inbox is one writer's set of directories. The inbox that a file lies in is the only thing that says who wrote
 * it. The spool does not look at what the files mean.
 *
 * A file's state is the directory it lies in, so `ls` shows it:
 *   writing      ipc/{inbox}/{subdirectory}/.tmp/…              belongs to the writer
 *   posted       ipc/{inbox}/{subdirectory}/{name}.json         belongs to the writer until it is claimed
 *   claimed      spool/{n}/{seq}~{inbox}~{subdirectory}~{name}  ours: the writer cannot reach it, and now it is read
 *   removed      the consumer stored what it needs and discarded the file
 *   quarantined  errors/{inbox}-e.{seq}-{name}.error            refused; `.error.json` beside it says why
 */
export interface Inbox {
  /** letters, digits, `-` and `_`; part of the claimed file's name */
  id: string
  /** the directory that contains the subdirectories */
  path: string
  /** names of the subdirectories that are read */
  subdirectories: readonly string[]
  /** subdirectories that are not urgent: the sweeper checks them, and they get no watcher */
  sweptOnly?: readonly string[]
}

/** Why the text of a file is not available. */
export type Problem = 'bad_name' | 'not_a_file' | 'too_large' | 'invalid_utf8' | 'unreadable'

export interface ClaimedFile {
  /** rises by one with each claim; never used twice in one data directory */
  seq: number
  inbox: string
  subdirectory: string
  /** the name it was posted under (unsafe characters are replaced if `problem` is `bad_name`) */
  name: string
  /** where the claimed file is now */
  path: string
  inode: number
  mtimeUs: number
  size: number
  text: string
  problem: Problem | undefined
  /** was delivered before, by this or an earlier process; the consumer's journal knows whether it was stored */
  recovered: boolean
  /** the writer may still be writing: one that does not rename gets a short grace time */
  mayGrow: boolean
}

export type WatchMode = 'events' | 'polling'

/** What an operator wants to know about a directory. Each problem is reported once, when it starts. */
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
  | 'too_many_events'
  | 'mode'
  | 'overflow'
  | 'abandoned_files'
  | 'not_removed'
  | 'consumer_failed'

export interface Report {
  kind: ReportKind
  inbox?: string
  subdirectory?: string
  /** what happened and what to do, in one sentence */
  message: string
  mode?: WatchMode
  /** number of removed files, for `overflow` */
  count?: number
}

export interface Owner {
  uid: number
  gid: number
}
