import type { Todo } from '@hatchway/protocol'
import type { AgentStore, SessionTransaction } from './agents.ts'
import type { ApprovalStore, ApprovalTransaction } from './approvals.ts'
import type { AuditStore, AuditTransaction } from './audit.ts'
import type { ChatStore, ChatTransaction } from './chats.ts'
import type { NewIncoming, NewMessage } from './entities/message.ts'
import type { FileStore, FileTransaction } from './files.ts'
import type { GroupStore, GroupTransaction } from './groups.ts'
import type { JournalStore, JournalTransaction } from './journal.ts'
import type { MessageStore, MessageTransaction } from './messages.ts'
import type { Meta } from './meta.ts'
import type { PluginTables, TableOwner } from './plugin-tables.ts'
import type { QuestionStore, QuestionTransaction } from './questions.ts'
import type { RefusalTable, RefusalTransaction } from './refusals.ts'
import type { RequestStore, RequestTransaction } from './requests.ts'
import type { TaintStore, TaintTransaction } from './taints.ts'
import type { TaskStore, TaskTransaction } from './tasks.ts'
import type { TodoTransaction } from './todos.ts'
import type { WebSessionStore } from './web-sessions.ts'

/** The store as the other rooms know it. Each entity has its schema in entities/, and its table in the file of its name. */
export type { AgentStore } from './agents.ts'
export type { ApprovalStore } from './approvals.ts'
export type { AuditBreak, AuditFilter, AuditStore } from './audit.ts'
export type { ChatStore } from './chats.ts'
export type * from './entities/audit.ts'
export type * from './entities/card.ts'
export type * from './entities/chat.ts'
export type * from './entities/command.ts'
export type * from './entities/file.ts'
export type * from './entities/message.ts'
export type * from './entities/request.ts'
export type * from './entities/run.ts'
export type * from './entities/taint.ts'
export type * from './entities/web-session.ts'
export type { QuestionStore } from './questions.ts'
export type { RequestStore } from './requests.ts'
export type { WebSessionStore } from './web-sessions.ts'

/** Inside one transaction. All of it becomes durable together, or nothing does. */
export interface Transaction
  extends GroupTransaction,
    TaskTransaction,
    JournalTransaction,
    MessageTransaction,
    RequestTransaction,
    QuestionTransaction,
    TodoTransaction,
    RefusalTransaction,
    TaintTransaction,
    AuditTransaction,
    ApprovalTransaction,
    FileTransaction,
    ChatTransaction,
    SessionTransaction {
  /** and with it its agent's session and what was said to the agent that it has not used */
  deleteGroup(folder: string): void
}

export interface Store extends GroupStore, TaskStore, JournalStore, MessageStore, Meta {
  /** the part of the database that is a plugin's own */
  pluginTables(owner: TableOwner): PluginTables
  /** `forget` removes what else there is of a group, in the transaction that unregisters it */
  whenGroupGoes(forget: (folder: string) => void): void

  /** Runs `work` and makes its changes durable; a failure inside, or on the disk, leaves no trace of it. */
  transaction<T>(work: (transaction: Transaction) => T): T

  refusals: Pick<RefusalTable, 'take'>
  agents: AgentStore
  requests: RequestStore
  taints: TaintStore
  approvals: ApprovalStore
  audit: AuditStore
  questions: QuestionStore
  files: FileStore
  chats: ChatStore
  webSessions: WebSessionStore
  todos(folder: string): readonly Todo[]
  /** what somebody said, the todo it made and the word about it, in one commit; undefined: it came before */
  noteTodo(said: NewIncoming, todo: Todo | undefined, word: NewMessage): number | undefined

  /** forgets some of the oldest rows beyond these numbers; whether there are more */
  prune(limits: {
    commands: number
    messages: number
    /** of the large ones of one group; left out: no such limit */
    messageBytes?: number
    /** of one group’s transcripts and results */
    transcriptBytes?: number | undefined
    runs: number
    tasks: number
    usageDays: number
  }): boolean
  /** copies everything, as it was at one moment meanwhile, while the work goes on */
  copyTo(path: string): Promise<void>
  close(): void
}
