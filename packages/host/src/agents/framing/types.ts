import type { DialectName, OutgoingFile, RunEvent, RunStart } from '@hatchway/protocol'

/** How one kind of container is told what to do, and how it says what came of it. */
export interface Framing {
  dialect: DialectName
  /** where `data/ipc/{folder}` is mounted */
  mountPoint: string
  /** whether the program inside is ours; a stranger's image has a program of its own */
  ownRunner: boolean
  /** whether it names each message it has used; of any other only what it took out of its inbox is known */
  namesUsed: boolean
  /** more places at which the program inside looks for the group's own folder */
  groupAt(start: RunStart): readonly string[]
  stdin(start: RunStart): string
  environment(start: RunStart): Record<string, string>
  /** files that have to lie in the group's directory before the start */
  files(start: RunStart): readonly OutgoingFile[]
  createReader(): OutputReader
  /** where it puts what it has to say, beside or instead of standard output */
  outlet?: Outlet
}

/** A directory that the container fills with files, each whole and read once, in the order of their names. */
export interface Outlet {
  directory: string
  /** of a file's JSON */
  meaning(body: Readonly<Record<string, unknown>>): readonly RunEvent[]
}

/** Takes standard output as it comes, in pieces of any size, and gives back what it says. Never keeps more than a bit. */
export interface OutputReader {
  read(chunk: string): readonly RunEvent[]
}
