import type { Logger } from 'pino'
import type { z } from 'zod'
import type { Channel } from '../../chat/channels/types.ts'

/** What not every platform can do, and how the documentation calls it. */
export const features = {
  buttons: 'Questions and approvals as buttons',
  threads: 'Answers in the thread or topic',
  quotes: 'Quoted messages both ways',
  files: 'Files both ways',
  reactions: 'Reactions both ways',
  edits: 'What people change',
  deletions: 'What people take back',
  typing: 'Typing',
  absence: 'What was said while nobody was there',
} as const
export type Feature = keyof typeof features

/** A platform that people can add. The file that has it imports nothing but zod: the rest is behind `load`. */
export interface ChannelKind<S extends z.ZodType = z.ZodType> {
  /** the name of the channel, and what its chats' addresses begin with: `telegram:…` */
  name: string
  /** as people write it */
  title: string
  /** what is kept, outside every sandbox, for its owner alone */
  settings: S
  /** what `channels add` asks for, in this order; what has an answer in `settings` by default may be left empty */
  questions: readonly Question[]
  /** what to do once it is added, a line for each step */
  next: readonly string[]
  /** what people can do there; the contract suite tries each of them, and the documentation lists them */
  does: readonly Feature[]
  /** the packages it needs, by whose lock file beside it; left out: none */
  library?: readonly string[]
  load(): Promise<ChannelModule<z.output<S>>>
}

interface Question {
  /** of the setting */
  key: string
  question: string
  isSecret?: boolean
}

export interface ChannelModule<S> {
  /** asks the platform whether it would let us in, and as whom: a line for people. Rejects with what is wrong. */
  check(options: ChannelOptions<S>): Promise<string>
  open(options: ChannelOptions<S>): Channel
}

export interface ChannelOptions<S> {
  settings: S
  /** one of `ChannelKind.library` */
  library<T>(name: string): Promise<T>
  /** what is in a file that goes along with a message; undefined: it is no longer kept */
  readFile(id: string): Promise<Buffer | undefined>
  /** a folder of its own outside every sandbox, for keys and sessions of the platform */
  folder(): string
  /** the name that people call the assistant by */
  assistant: string
  log: Logger
  now(): number
}

export const defineKind = <S extends z.ZodType>(kind: ChannelKind<S>): ChannelKind<S> => kind
