import type { RunStart, Task } from '@hatchway/protocol'
import type { Stretch } from './connection.ts'
import type { Attachment } from './file-types.ts'
import type { NewMessage } from './types.ts'

/**
 * waiting   stored, no run has it yet
 * given     a run has it and has not said that it used it; goes back to waiting when that run ends
 * used      a run used it, or it answered a question
 * context   said without calling the agent; goes along with the next one that does
 */
export type IncomingStatus = 'waiting' | 'given' | 'used' | 'context'

export interface IncomingRow {
  id: number
  group: string
  jid: string
  channel: string
  externalId: string | null
  sender: string
  senderName: string
  text: string
  attachments?: readonly Attachment[] | undefined
  status: IncomingStatus
  /** the run that was given it last, whether it has used it or not */
  runId: string | null
  createdAt: number
}

export type NewIncoming = Omit<IncomingRow, 'id' | 'status' | 'runId'> & {
  status: Exclude<IncomingStatus, 'given'>
}

/** `stopped`: a person ended it, or the host stopped while it worked; nothing was wrong with it */
export const runStatuses = ['running', 'done', 'failed', 'stopped'] as const
export type RunStatus = (typeof runStatuses)[number]

export interface RunRow {
  id: string
  group: string
  kind: RunStart['kind']
  taskId: string | null
  occurrenceId: string | null
  /** the one that was really used; `none` until one is chosen */
  sandbox: string
  /** the image it ran from; null: none, its programs are the host's */
  image: string | null
  /** `image`: whatever agent the image brings */
  driver: string
  sessionId: string | null
  status: RunStatus
  startedAt: number
  endedAt: number | null
  /** what it said last */
  result: string | null
  error: string | null
}

export interface StepRow {
  runId: string
  at: number
  /** a run's step as the runner told it, or `input`, `result`, `error`, `log` */
  kind: string
  name: string | null
  text: string
}

/** claimed → running → done | failed; claimed → skipped (paused, no rights any more, not woken, missed) */
export type OccurrenceStatus = 'claimed' | 'running' | 'done' | 'failed' | 'skipped'

/** One time that a task was due. It is claimed before it runs, so it runs once. */
export interface OccurrenceRow {
  id: string
  taskId: string
  group: string
  dueAt: number
  /** somebody asked for it now; it is no time of the schedule's */
  manual: boolean
  status: OccurrenceStatus
  runId: string | null
  claimedAt: number
  startedAt: number | null
  endedAt: number | null
  result: string | null
  error: string | null
}

/** What becomes of a task once an occurrence is claimed. */
export interface TaskMove {
  status: Task['status']
  nextRun: number | null
  /** why, in place of the last result */
  note?: string
}

export interface Usage {
  group: string
  /** 2026-01-31, UTC */
  day: string
  model: string
  requests: number
  inputTokens: number
  outputTokens: number
}

/** Inside one transaction. */
export interface SessionTransaction {
  /** the agent's own session, and what was said in the chat that no run has used; what calls the agent still waits */
  forgetSession(folder: string): void
  /** undefined: this message of this chat is known already */
  receive(message: NewIncoming): number | undefined
  /** one that is under way counts as done; whether it was */
  finishOccurrence(id: string, result: string, at: number): boolean
}

/** What sessions, scheduler and channels keep. Each call is durable, whole or not at all. */
export interface AgentStore {
  /** undefined: this message of this chat is known already */
  receive(message: NewIncoming): number | undefined
  /** whether this message of this chat came before */
  isKnown(message: Pick<IncomingRow, 'channel' | 'jid' | 'externalId'>): boolean
  /** oldest first */
  incoming(filter: {
    group?: string
    status?: IncomingStatus
    runId?: string
    after?: number
    limit?: number
  }): readonly IncomingRow[]
  /** the newest of a chat, oldest first */
  latestIncoming(filter: {
    group: string
    jid: string
    limit: number
    characters: number
  }): Stretch<IncomingRow>
  /** folders of groups for which something waits, the longest waiting first */
  groupsWaiting(): readonly string[]
  /** notes that a run has these, and with them everything of the group that was `context` before them */
  give(ids: readonly number[], runId: string): void
  /** of what the run was given; the context before them counts as used with them */
  use(ids: readonly number[], runId: string): void
  /** whatever the run was given and did not use waits again, or is context again */
  giveBack(runId: string): void

  /** notes that it begins and, in the same commit, what it is given */
  insertRun(run: RunRow, given?: readonly number[]): void
  updateRun(
    id: string,
    change: Partial<
      Pick<RunRow, 'sessionId' | 'sandbox' | 'image' | 'status' | 'endedAt' | 'result' | 'error'>
    >,
  ): void
  run(id: string): RunRow | undefined
  /** the newest, in the order in which they began */
  runs(filter: { group?: string; status?: RunStatus; taskId?: string; limit?: number }): readonly RunRow[]
  /** those of runs that are forgotten are not kept */
  addSteps(steps: readonly StepRow[]): void
  steps(runId: string): readonly StepRow[]

  /** the agent's own session, to go on with */
  session(group: string): string | undefined
  setSession(group: string, sessionId: string | null): void
  /**
   * A turn has ended: what it used, its session and what it says become durable together. false, and nothing is
   * done, if the run has ended: last words of a run that was given up are not said. A run that is not
   * known is the host itself, which answers what waits.
   */
  finishTurn(turn: {
    runId: string
    group: string
    usedIds: readonly number[]
    sessionId: string | null
    /** whether the session is the group's, to go on with, or the run's own */
    keepSession: boolean
    message: NewMessage | undefined
  }): boolean

  task(id: string): Task | undefined
  /** active tasks whose time has come, the longest due first */
  dueTasks(now: number, limit: number): readonly Task[]
  /** when the next active task is due */
  nextDue(): number | undefined
  /**
   * Claims one occurrence and moves its task on in the same commit. undefined if the task is no longer active or no
   * longer due at that time, or if that occurrence was claimed before: then it is only moved on.
   */
  claimOccurrence(occurrence: OccurrenceRow, then: TaskMove): OccurrenceRow | undefined
  /** one that somebody asked for; the task's next run stays what it is. false: it is there already */
  insertOccurrence(occurrence: OccurrenceRow): boolean
  /** whether the task was active and due at that time */
  moveTask(id: string, dueAt: number, then: TaskMove): boolean
  updateOccurrence(
    id: string,
    change: Partial<Pick<OccurrenceRow, 'status' | 'runId' | 'startedAt' | 'endedAt' | 'result' | 'error'>>,
  ): void
  /** also notes the result with the task, and when it ran if it did; one that has ended stays as it is */
  endOccurrence(
    id: string,
    end: Pick<OccurrenceRow, 'status' | 'result' | 'error'> & { endedAt: number },
  ): void
  occurrence(id: string): OccurrenceRow | undefined
  /** the newest, in the order in which they were claimed */
  occurrences(filter: {
    taskId?: string
    group?: string
    status?: OccurrenceStatus
    limit?: number
  }): readonly OccurrenceRow[]

  addUsage(usage: Usage): void
  usage(filter: { group?: string; since?: string }): readonly Usage[]
}
