import type { OutgoingFile, RunEvent, RunStart } from '@hatchway/protocol'
import type { SentTexts } from '../../sandboxes/sent-texts.ts'

/** How one kind of container is started, and how it reports results. A new dialect adds one entry to `index.ts`. */
export interface ContainerProtocol {
  /** where `data/ipc/{folder}` is mounted */
  mountPoint: string
  /** whether the program inside is ours; a stranger's image has a program of its own */
  ownRunner: boolean
  /** whether it names the inputs that each result is about; otherwise only what it took out of its inbox is known */
  namesUsed: boolean
  /** whether the program inside writes into the root of its hatch, and what it finds there */
  rootFiles?: readonly string[]
  /** more places at which the program inside looks for the group's own folder */
  groupAt(start: RunStart): readonly string[]
  stdin(start: RunStart): string
  environment(start: RunStart): Record<string, string>
  /** files that have to lie in the group's directory before the start */
  files(start: RunStart): readonly OutgoingFile[]
  /** `sent`: texts that its model sends with a tool, where the host reads along */
  createReader(sent?: Pick<SentTexts, 'take' | 'clear'>): OutputReader
  /**
   * Whether its turn may go on after what looks like its end, where the host does not read along with its model. Such a
   * container ends by itself after a task, and ends its turn before it closes.
   */
  mayGoOn?: boolean
  /** where it puts what it has to say, beside or instead of standard output */
  outlet?: Outlet
}

/** A directory that the container fills with files, each whole and read once, in the order of their names. */
export interface Outlet {
  directory: string
  /** of a file's JSON */
  meaning(body: Readonly<Record<string, unknown>>): readonly RunEvent[]
}

/** Takes standard output as it comes, in pieces of any size, and returns the events in it. It keeps little in memory. */
export interface OutputReader {
  read(chunk: string): readonly RunEvent[]
}
