import type { Row } from './evidence.ts'

/** What a project's own tools let its agent do, each writing what that project writes. Those it lacks are left out. */
export interface Kit {
  ipc: string
  who: { folder: string; jid: string; main: boolean }
  /** whether it writes into the root of its hatch */
  ownRoot?: true
  /** everything in the group's directory that it may write into */
  boxes: readonly string[]
  /** writes it as the project writes, and tells the file's name */
  post(directory: string, content: object, name?: string): string
  /** the name it would have while it is written; left out: there is none */
  temporaryName?(): string
  /** something that harms nobody and can be told apart by its text */
  harmless(text: string): { directory: string; body: object }
  message?(text: string, more?: { jid?: string; sender?: string; claims?: boolean }): void
  schedule(task: NewTask): void
  /** its host takes any context mode it does not know for a fresh session */
  takesAnyMode?: true
  pause(id: string): void
  resume(id: string): void
  cancel(id: string): void
  /** of the change, what its project can change */
  update?(id: string, change: Change): void
  register(group: NewGroup): void
  unregister?(jid: string): void
  refreshBody: object
  /** keys of a task in `current_tasks.json`: those it always has, and those it may have */
  taskKeys: { always: readonly string[]; maybe: readonly string[]; group: string }
  /** throws where `available_groups.json`, undefined if there is none, is not as the project reads it */
  checkGroups(content: unknown): readonly Row[]
  /** waits for the answer to what was posted with this id as the project's own code does */
  ask?(question: Question): Promise<Answer>
  /** the same for what nobody waits for the answer of */
  tell?(command: string, input: Row): Promise<void>
  /** throws where a command of the host is not listed as the project reads it */
  checkJob?(task: Row): unknown
  /** what only this project's agents do, by the order that tells them to */
  own?: Readonly<Record<string, (argument: string) => Promise<void>>>
}

interface NewTask {
  prompt: string
  type: string
  value: string
  mode?: string
  target?: { jid: string; folder: string }
  id?: string
  script?: string
  model?: string
}

interface Change {
  prompt?: string
  type?: string
  value?: string
  script?: string
  status?: string
}

interface NewGroup {
  jid: string
  name: string
  folder: string
  trigger: string
  needsTrigger?: boolean
  config?: object
}

/** A request in the words of the canonical protocol; the project's own words are the kit's matter. */
interface Question {
  command: string
  input: Row
  /** asks again under an id that was used before */
  id?: string
}

/** What came back, whatever its shape was, which the kit has tested. */
export interface Answer {
  ok: boolean
  result: Row
  error: string
}
