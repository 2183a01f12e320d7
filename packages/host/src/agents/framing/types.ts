import type { DialectName, OutgoingFile, RunEvent, RunStart } from '@hatchway/protocol'

/** How one kind of container is told what to do, and how it says what came of it. */
export interface Framing {
  dialect: DialectName
  /** where `data/ipc/{folder}` is mounted */
  mountPoint: string
  /** whether the program inside is ours; a stranger's image has a program of its own */
  ownRunner: boolean
  stdin(start: RunStart): string
  environment(start: RunStart): Record<string, string>
  /** files that have to lie in the group's directory before the start */
  files(start: RunStart): readonly OutgoingFile[]
  createReader(): OutputReader
}

/** Takes standard output as it comes, in pieces of any size, and gives back what it says. Never keeps more than a bit. */
export interface OutputReader {
  read(chunk: string): readonly RunEvent[]
}
