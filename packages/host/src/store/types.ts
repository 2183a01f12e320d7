import type { CommandType, DialectName, Group, Outcome, ReplyAddress, Task, Todo } from '@hatchway/protocol'
import type { AgentStore, NewIncoming, SessionTransaction } from './agent-types.ts'
import type { ApprovalStore, ApprovalTransaction } from './approvals.ts'
import type { AuditStore, AuditTransaction } from './audit-types.ts'
import type { Size, Stretch } from './connection.ts'
import type { DeployStore, DeployTransaction } from './deploys.ts'
import type { Attachment, FileStore, FileTransaction } from './file-types.ts'
import type { JobStore, JobTransaction } from './job-runs.ts'
import type { PeriodicTransaction } from './periodic.ts'
import type { RefusalTable, RefusalTransaction } from './refusals.ts'
import type { QuestionStore, RequestStore, ServiceTransaction } from './service-types.ts'
import type { Change } from './settled.ts'
import type { TaintStore, TaintTransaction } from './taints.ts'
import type { WebSessionStore } from './web-sessions.ts'

/** One handled file: the journal that makes "executed once" true (promise 3) and the history people look at. */
export interface CommandRow {
  /** the claim's number; the claimed file's name begins with it */
  seq: number
  group: string
  directory: string
  file: string
  inode: number
  mtimeUs: number
  dialect: DialectName | null
  /** as the file named it */
  type: string | null
  requestId: string | null
  reply: ReplyAddress | null
  /** null: accepted, and the answer follows */
  outcome: Outcome | null
  receivedAt: number
  tookUs: number
}

type MessageKind = 'text' | 'reaction' | 'question' | 'approval'
type MessageStatus = 'pending' | 'sent' | 'failed'

/** The outbox: what agents said, until a channel has delivered it (promise 4). */
export interface MessageRow {
  id: number
  group: string
  jid: string
  kind: MessageKind
  text: string
  sender: string | null
  speech: { text: string; title?: string | undefined } | null
  messageId: string | null
  attachments?: readonly Attachment[] | undefined
  status: MessageStatus
  attempts: number
  nextAttemptAt: number
  /** of a message that goes out in several parts: those that were delivered before the last attempt broke off */
  partsSent: number
  partsTotal: number
  error: string | null
  createdAt: number
  sentAt: number | null
}

export type NewMessage = Pick<
  MessageRow,
  'id' | 'group' | 'jid' | 'kind' | 'text' | 'sender' | 'speech' | 'messageId' | 'attachments' | 'createdAt'
>

/** Inside one transaction. All of it becomes durable together, or nothing does. */
export interface Transaction
  extends ServiceTransaction,
    RefusalTransaction,
    TaintTransaction,
    AuditTransaction,
    ApprovalTransaction,
    PeriodicTransaction,
    JobTransaction,
    DeployTransaction,
    FileTransaction,
    SessionTransaction {
  group(folder: string): Group | undefined
  /** compared without case: two groups must never share a directory on a file system that ignores it */
  isFolderTaken(folder: string): boolean
  groupByJid(jid: string): Group | undefined
  groups(): readonly Group[]
  insertGroup(group: Group): void
  /** its name and its chat; what it is stays */
  updateGroup(group: Group): void
  /** and with it its agent's session and what was said to the agent that it has not used */
  deleteGroup(folder: string): void

  task(id: string): Task | undefined
  /** not cancelled, not completed; all groups' where no folder is given */
  openTasks(folder?: string): readonly Task[]
  openTaskSize(folder: string): Size
  /** what the messages of more than 1 KiB hold that are kept */
  largeMessageBytes(folder: string): number
  /** a fresh id made of digits, as one dialect can only name tasks by number */
  newTaskId(): string
  insertTask(task: Task): void
  updateTask(task: Task): void

  answered(group: string, requestId: string): CommandRow | undefined
  handled(seq: number): CommandRow | undefined
  insertCommand(row: CommandRow): void
  insertMessage(message: NewMessage): void
}

interface CommandFilter {
  group?: string
  type?: CommandType | string
  /** `open`: accepted, and the journal has no answer */
  ok?: boolean | 'open'
  /** only rows with a larger seq */
  after?: number
  /** only rows with a smaller seq */
  before?: number
  limit: number
}

export interface Store {
  /** Runs `work` and makes its changes durable; a failure inside, or on the disk, leaves no trace of it. */
  transaction<T>(work: (transaction: Transaction) => T): T

  group(folder: string): Group | undefined
  groups(): readonly Group[]
  tasks(filter: { group?: string; open?: boolean }): readonly Task[]
  /** open ones, of each group that has any */
  countOpenTasks(): readonly { group: string; count: number }[]
  /** open ones of one group, the newest first, with the beginnings of their texts */
  briefTasks(folder: string, limit: number): readonly Task[]
  /** open ones */
  countTasks(): { active: number; paused: number }
  /** oldest first, fewer than `limit` where they hold so many `characters` together */
  messages(filter: {
    group?: string
    status?: MessageStatus
    after?: number
    limit?: number
    characters?: number
  }): readonly MessageRow[]
  /** the newest, oldest first, looked for among the last so many of everybody’s */
  latestMessages(filter: {
    group?: string
    jid?: string
    status?: MessageStatus
    within?: number
    limit: number
    characters: number
  }): Stretch<MessageRow>
  commands(filter: CommandFilter): readonly CommandRow[]
  /** with its answer, also where that is too large for the journal */
  command(seq: number): CommandRow | undefined
  /** forgets that a request id was answered, so that an operator can have the file handled again */
  forgetRequest(seq: number): void

  /** messages that are not delivered yet */
  countPending(): number
  /** messages whose time has come: those that failed before, then new ones in their order */
  dueMessages(now: number, limit: number, characters?: number): readonly MessageRow[]
  settleMessages(changes: readonly Change[]): void

  refusals: Pick<RefusalTable, 'take'>
  agents: AgentStore
  requests: RequestStore
  taints: TaintStore
  approvals: ApprovalStore
  audit: AuditStore
  deploys: DeployStore
  jobs: JobStore
  questions: QuestionStore
  files: FileStore
  webSessions: WebSessionStore
  todos(folder: string): readonly Todo[]
  /** what somebody said, the todo it made and the word about it, in one commit; undefined: it came before */
  noteTodo(said: NewIncoming, todo: Todo | undefined, word: NewMessage): number | undefined

  lastSeq(): number
  lastMessageId(): number
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
  meta(key: string): string | undefined
  setMeta(key: string, value: string): void
  /** the user that runs of this folder have where the host is root; the same for ever, and no other folder's */
  agentUser(folder: string): number
  /** those that have such a user */
  agentFolders(): readonly string[]
  /** copies everything, as it was at one moment meanwhile, while the work goes on */
  copyTo(path: string): Promise<void>
  close(): void
}
