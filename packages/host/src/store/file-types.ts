/** A file that goes along with a message. */
export interface Attachment {
  /** names the host's own copy */
  id: string
  /** for people: one line, and no path */
  name: string
  /** as its content shows */
  type: string
  bytes: number
  /** where the agent finds it, as the agent sees it; only of what people sent */
  path?: string | undefined
  /** there is no copy any longer */
  gone?: boolean | undefined
}

/** The host's copy of a file. */
export interface FileRow extends Omit<Attachment, 'path' | 'gone'> {
  /** whose message it is, or to whom it is said */
  group: string
  /** of the chat it is seen in */
  jid: string
  direction: 'in' | 'out'
  /** the message it goes along with; null: it was not said yet */
  message: number | null
  createdAt: number
}

/** Each call is durable, whole or not at all. */
export interface FileStore {
  file(id: string): FileRow | undefined
  insert(file: FileRow): void
  /** bytes of one group's files */
  total(group: string): number
  /**
   * Forgets a group's oldest files until the rest has so many bytes, and tells so in their messages. What is not
   * delivered or not said yet stays. The ids of those that are forgotten.
   */
  trim(group: string, bytes: number): readonly string[]
  /** forgets files whose message is forgotten, and those from before this time that nobody has said */
  prune(before: number): void
}

/** Inside one transaction. */
export interface FileTransaction {
  insertFile(file: FileRow): void
}
