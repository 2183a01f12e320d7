import { z } from 'zod'
import type { AnyCommand } from './commands.ts'
import type { Refusal } from './errors.ts'
import { requestIdSchema } from './identifiers.ts'
import type { Outcome } from './receipts.ts'
import type { Progress, Services, Todo } from './services.ts'
import type { DialectName, Group, OtherChat, Task } from './snapshots.ts'

/** A file as it came in: where it lay, and its JSON. Nothing in it says who sent it; the directory does. */
export interface IncomingFile {
  /** the subdirectory: `messages`, `tasks`, `groups`, `audio` */
  directory: string
  /** the folder of the group whose directory it lay in */
  sender?: string | undefined
  body: Readonly<Record<string, unknown>>
}

/** Where and in which shape the answer to a request goes. */
export const replyAddressSchema = z.object({
  directory: z.enum(['responses', 'merge_results', 'x_results']),
  id: requestIdSchema,
  shape: z.enum(['receipt', 'result', 'decision', 'success']),
})
export type ReplyAddress = z.infer<typeof replyAddressSchema>

/** What a dialect makes of a file. `claimedSender` is compared with the directory, never believed. */
export interface Translation {
  dialect: DialectName
  /** the type as the file named it, for people to read */
  type: string
  command: AnyCommand | Refusal
  reply?: ReplyAddress
  claimedSender?: string
}

/** A file the host puts into a group's directory, relative to that directory. */
export interface OutgoingFile {
  path: string
  content: string
}

export interface InputMessage {
  text: string
  sender: string
  sender_name: string
  timestamp: string
  /** where the writer is, if by another clock than the run’s */
  timezone?: string | undefined
}

/** What else there is to know where messages are put into words. */
export interface InputContext {
  timezone: string
  /** what the host itself has to say first, each a sentence or two in one line */
  notices: readonly string[]
}

export interface Dialect {
  name: DialectName
  /** subdirectories the containers expect to find */
  directories: readonly string[]
  /** undefined: not a file of this dialect */
  recognise(file: IncomingFile): Translation | undefined
  tasks(tasks: readonly Task[], viewer: Group): OutgoingFile
  /** undefined: this viewer gets no such file */
  groups(
    groups: readonly Group[],
    viewer: Group,
    syncedAt: string,
    /** chats that could be registered */
    others?: readonly OtherChat[],
  ): OutgoingFile | undefined
  /** what the group may ask services for; left out: its containers know no such file */
  services?(services: Services): OutgoingFile
  /** left out: its containers know no such file */
  todos?(todos: readonly Todo[]): OutgoingFile
  /** how far a request has come; left out: its containers would take it for something else */
  progress?(progress: Progress): OutgoingFile
  /** a message for the running session; `name` is the file's, without `.json` */
  input(message: InputMessage, name: string, context: InputContext): OutgoingFile
  /** asks the session to finish after its current turn */
  close(timestamp: string): OutgoingFile
  /** asks it to end its current turn now, and to stay; left out: its containers know no such wish */
  interrupt?(timestamp: string): OutgoingFile
  /** the same, and to drop what else it was given; left out: `interrupt` does that */
  stop?(timestamp: string): OutgoingFile
}

export type { Outcome }
