import type { Group, Outcome, Task } from '@hatchway/protocol'

/** What the host's API answers, as far as the console uses it. docs/openapi.json has all of it. */
export type Role = 'viewer' | 'approver' | 'admin'

export interface Me {
  name: string
  role: Role
  csrf: string
}

interface Status {
  version: string
  pid: number
  data: string
  started_at: string
  durability: string
  groups: number
  handled: number
  refused: number
  busy: boolean
  uptime_s: number
  sandbox: { name: string; isolated: boolean; warning: string | null } | null
  agents_enabled: boolean
  problem: string | null
}

interface RunningSession {
  run_id: string
  group: string
  kind: string
  state: string
  started_at: string | null
}

export interface TrafficPoint {
  at: string
  handled: number
  refused: number
}

export interface Overview {
  status: Status
  groups: number
  sessions: RunningSession[]
  waiting: {
    messages: number
    requests: number
    approvals: number
    questions: number
    errors: number
    deploys: number
  }
  latency: {
    p50_us: number | null
    p99_us: number | null
    waited_p50_ms: number | null
    waited_p99_ms: number | null
    count: number
  }
  traffic: { step_s: number; points: TrafficPoint[] }
  tasks: { active: number; paused: number; next_run: string | null }
}

export interface GroupDetails extends Group {
  mode?: 'events' | 'polling'
  sandbox: string | null
  driver: string | null
  repo: string | null
  mounts: { from: string; to: string; writable: boolean }[]
  limits: Record<string, number | string | null>
  taint: { corrupted: boolean; secret: boolean }
  session: { state: string; run_id: string | null } | null
}

export interface Command {
  seq: number
  group: string
  directory?: string
  file: string
  dialect: string | null
  type: string | null
  request_id: string | null
  outcome: Outcome | null
  received_at: string
  took_us: number
  waited_ms?: number
  repeated?: boolean
}

export interface CommandStep {
  name: 'written' | 'claimed' | 'decided' | 'answered'
  at: string
  note?: string
}

export interface CommandDetails extends Command {
  content: { text: string; truncated: boolean } | null
  sender: { group: string; dialect: string | null; main: boolean }
  steps: CommandStep[]
  audit: AuditEntry[]
  error_id: string | null
}

export interface AuditEntry {
  seq: number
  hash: string
  at: string
  group: string | null
  actor: string
  action: string
  summary: string
  taint: { corrupted: boolean; secret: boolean } | null
  gate: string | null
  verdict: string | null
  decided_by: string | null
  reason: string | null
  took_ms: number | null
  outcome: string
  request_id: string | null
  details: Record<string, unknown> | null
}

export type AuditReport =
  | {
      ok: true
      entries: number
      removed: { until: number; at: string } | null
      head: { seq: number; hash: string }
    }
  | { ok: false; problem: string; seq: number; message: string }

export type { Task }

export interface Upcoming {
  task_id: string
  group: string
  prompt: string
  at: string
  /** it goes on after this, which is not listed */
  more?: true
}

export interface Occurrence {
  id: string
  due_at: string
  manual: boolean
  status: 'claimed' | 'running' | 'done' | 'failed' | 'skipped'
  run_id: string | null
  started_at: string | null
  ended_at: string | null
  result: string | null
  error: string | null
}

export interface JobRun {
  output: string
  dropped: number
  exit_code: number | null
  signal: string | null
  timed_out: boolean
}

export interface Run {
  id: string
  group: string
  kind: 'chat' | 'task'
  task_id: string | null
  occurrence_id: string | null
  sandbox: string
  image: string | null
  driver: string
  session_id: string | null
  status: 'running' | 'done' | 'failed' | 'stopped'
  started_at: string
  ended_at: string | null
  result: string | null
  error: string | null
}

export interface Transcript extends Run {
  steps: { at: string; kind: string; name: string | null; text: string }[]
}

export interface RefusedFile {
  id: string
  original_file: string | null
  error: string
  processed_at: string
  source_group: string
  directory: string | null
  code: string
  type: string | null
  kept: boolean
  size: number
  count: number
  content?: { base64: string; truncated: boolean } | null
}

export interface Shown {
  /** `text` is quoted and escaped already */
  fields: { name: string; text: string; more?: number; note?: string }[]
  more: number
}

export interface Approval {
  id: string
  action: { name: string; summary: string; payload: Shown }
  why: string
  status: 'open' | 'allowed' | 'denied' | 'expired' | 'withdrawn'
  decided_by: string | null
  words: string | null
  always: boolean
  expires_at: string
  can_decide: boolean
  can_always: boolean
}

export interface ListedApproval extends Approval {
  group: string
  jid: string
  created_at: string
  closed_at: string | null
}

export interface WholeApproval extends ListedApproval {
  whole: Shown | null
}

export interface ApprovalRule {
  id: number
  group: string
  name: string
  summary: string
  digest: string
  made_by: string
  created_at: string
}

/** A browser that is let in. */
export interface WebSession {
  id: string
  name: string
  role: Role
  way: 'link' | 'password' | 'oidc'
  address: string
  browser: string
  created_at: string
  seen_at: string
  expires_at: string
  current: boolean
}

export interface Setting {
  name: string
  value: string | number | null
  source: string
  default: string
  description: string
  env: string
}

export type Topic =
  | 'tasks'
  | 'groups'
  | 'approvals'
  | 'questions'
  | 'errors'
  | 'messages'
  | 'deploys'
  | 'jobs'
  | 'status'

export type FeedEvent =
  | { kind: 'hello'; complete: boolean }
  | { kind: 'command'; command: Command }
  | { kind: 'run'; run_id: string; group: string; run_kind: string; state: string }
  | { kind: 'changed'; what: Topic }
  | { kind: 'traffic'; at: string; handled: number; refused: number }

export interface ChatStatus {
  version: string
  assistant: string
  warning: string | null
  attachment_bytes: number
}

export interface Room {
  jid: string
  folder: string
  name: string
  main: boolean
  channel: string
  writable: boolean
  trigger: string | null
  typing: boolean
  waiting: { questions: number; approvals: number }
}

export interface Attachment {
  id: string
  name: string
  type: string
  bytes: number
  gone?: boolean
}

export interface GivenAnswer {
  answer: string
  option: number | null
  by: string
}

export interface QuestionCard {
  id: string
  questions: { question: string; options?: { label: string; description?: string }[] }[]
  answers: (GivenAnswer | null)[]
  status: 'open' | 'answered' | 'expired' | 'withdrawn'
}

export interface ListedQuestion extends QuestionCard {
  group: string
  jid: string
  created_at: string
  expires_at: string
  can_answer: boolean
}

export interface Entry {
  key: string
  direction: 'in' | 'out'
  jid: string
  kind: 'text' | 'reaction' | 'question' | 'approval'
  sender: string | null
  text: string
  at: string
  status: string
  error: string | null
  attachments?: Attachment[]
  question?: QuestionCard
  approval?: Approval
}

export type ChatEvent =
  | { kind: 'hello'; complete: boolean; typing: string[] }
  | { kind: 'entry'; entry: Entry }
  | { kind: 'typing'; jid: string; on: boolean }
  | { kind: 'chats' }
