import type { Confirmation } from '../../../host/src/chat/channels/types.ts'
import type { HostWithChannel } from './host.ts'

/**
 * A chat platform as the contract suite needs it: a real server, or a stand-in written from the vendor's documentation.
 * What a platform cannot do is left out, and the suite then expects the channel to do without.
 */
export interface Platform {
  /** what `channels add` would be given */
  settings: Record<string, unknown>
  /** a chat with Ann alone, and one with several people in it, by their addresses in Hatchway */
  direct: string
  room: string
  /** people on the platform; `id` is the lasting one that counts as `sender` */
  ann: Person
  stranger: Person
  /** somebody says something; the platform's id of it */
  say(by: Person, jid: string, text: string, more?: Said): Promise<string>
  /** what people see in a chat, oldest first, as it is now */
  shown(jid: string): Promise<readonly Shown[]>
  /** the platform cannot be reached, and can be reached again */
  down(): Promise<void>
  up(): Promise<void>
  close(): Promise<void>

  /** a chat with somebody else alone; a number makes one person, before the host is opened on the platform */
  another?(number: number): Promise<Chat>
  /** it is the server itself that ends: nobody can say anything until it is up again */
  isDownForAll?: boolean
  /** the operator scans or types what the channel shows, in the platform's own app; once for each value */
  confirm?(what: Confirmation): Promise<void>
  /** is given each host that is opened on it: some platforms are within the host, or call it themselves */
  meet?(host: Pick<HostWithChannel, 'channel' | 'store' | 'chats'>): void
  /** somebody presses a button of ours, by what it says */
  press?(by: Person, jid: string, id: string, label: string): Promise<void>
  edit?(by: Person, jid: string, id: string, text: string): Promise<void>
  remove?(by: Person, jid: string, id: string): Promise<void>
  react?(by: Person, jid: string, id: string, emoji: string): Promise<void>
  rename?(jid: string, name: string): Promise<void>
  /** whether the assistant is seen to be typing */
  isTyping?(jid: string): boolean | Promise<boolean>
  /** so many of our next deliveries are refused: by a limit that is over soon, or by a failure of the server */
  refuse?(times: number, how: 'limit' | 'failure'): void
  /** gives what was said once more, as platforms do that are not sure whether it arrived */
  repeat?(): Promise<void>
  /** two things are said, and the second is given before the first; left out: the platform keeps the order */
  swap?(by: Person, jid: string, texts: readonly [string, string]): Promise<void>
  /**
   * The stranger calls the assistant in the room and passes for Ann as well as the platform lets them; left out: all they
   * can do is to take her name.
   */
  forge?(text: string): Promise<void>
  /** what was delivered once is not shown twice, whoever crashes: there is a key for it */
  dropsRepeats?: boolean
}

export interface Person {
  id: string
  name: string
}

export interface Chat {
  person: Person
  jid: string
}

export interface Said {
  /** calls the assistant by the platform's own means */
  mention?: boolean
  thread?: string
  /** the platform's id of the message it answers */
  replyTo?: string
  file?: { name: string; content: Buffer }
}

export interface Shown {
  id: string
  isOurs: boolean
  /** without markup, as people read it */
  text: string
  buttons?: readonly string[]
  thread?: string | undefined
  replyTo?: string | undefined
  file?: { name: string; bytes: number } | undefined
  reactions?: readonly string[]
}
