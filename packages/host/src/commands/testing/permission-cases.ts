import type { Task } from '@hatchway/protocol'
import {
  type Intent,
  type Op,
  type Said,
  type Writer,
  writers,
} from '../../../../testing/src/writers/writers.ts'

/**
 * Who may do what, in every dialect, through real files: each case is one file in the directory of one sender, and
 * what must have become of it in the store, in errors/ and in the sender's directory. One host handles all of them.
 */
export const senders = ['main', 'owner', 'other', 'stray'] as const
export type Sender = (typeof senders)[number]

/** Whom a file is about: the sender itself, the owner, the main group, or somebody there is not. */
export type Target =
  | 'own'
  | 'owner'
  | 'main'
  | 'nobody'
  | 'new'
  | 'taken chat'
  | 'taken folder'
  | 'victim'
  | 'host'

export const families: Record<
  Op,
  | 'chat'
  | 'schedule'
  | 'task'
  | 'register'
  | 'unregister'
  | 'refresh'
  | 'question'
  | 'shell'
  | 'host later'
  | 'self later'
  | 'periodic agent'
  | 'reset'
  | 'finish'
> = {
  send_message: 'chat',
  reply: 'chat',
  speak: 'chat',
  react: 'chat',
  schedule_task: 'schedule',
  update_task: 'task',
  pause_task: 'task',
  resume_task: 'task',
  cancel_task: 'task',
  register_group: 'register',
  unregister_group: 'unregister',
  refresh_groups: 'refresh',
  schedule_host_job: 'host later',
  create_periodic_agent: 'periodic agent',
  deploy: 'host later',
  reset_context: 'reset',
  finished_work: 'finish',
  sync_worktree: 'self later',
  call_service: 'self later',
  ask_user: 'question',
  check_shell: 'shell',
}

const targetsOf: Record<(typeof families)[Op], readonly Target[]> = {
  chat: ['own', 'owner', 'main', 'nobody'],
  schedule: ['own', 'owner', 'main', 'nobody'],
  task: ['own', 'owner', 'main', 'nobody'],
  register: ['new', 'taken chat', 'taken folder'],
  unregister: ['victim', 'main', 'nobody'],
  refresh: ['host'],
  question: ['own'],
  shell: ['own'],
  'host later': ['host'],
  'self later': ['own'],
  'periodic agent': ['host'],
  reset: ['own'],
  finish: ['own'],
}

/** The permission table in the documents' words, written down a second time. `done`, `answer follows`, or the code. */
function verdict(op: Op, sender: Sender, target: Target): string {
  if (sender === 'stray') return 'unregistered_group'
  const main = sender === 'main'
  const mayTouch = main || target === 'own' || target === sender
  switch (families[op]) {
    case 'chat':
      return mayTouch ? 'done' : 'forbidden'
    case 'schedule':
      if (target === 'nobody') return main ? 'not_found' : 'forbidden'
      return mayTouch ? 'done' : 'forbidden'
    case 'task':
      if (target === 'nobody') return 'not_found'
      return mayTouch ? 'done' : 'forbidden'
    case 'register':
      if (!main) return 'forbidden'
      return target === 'new' ? 'done' : 'conflict'
    case 'unregister':
      if (!main || target === 'main') return 'forbidden'
      return target === 'victim' ? 'done' : 'not_found'
    case 'refresh':
      return main ? 'done' : 'forbidden'
    case 'question':
      return 'answer follows'
    case 'shell':
      return 'done'
    case 'host later':
      return main ? 'unavailable' : 'forbidden'
    case 'self later':
      return 'unavailable'
    case 'periodic agent':
      return main ? 'done' : 'forbidden'
    case 'reset':
      return 'done'
    case 'finish':
      // No agents are run here, so no run is going on.
      return 'wrong_state'
  }
}

export interface Case {
  title: string
  writer: Writer
  sender: Sender
  target: Target
  lies: boolean
  intent: Intent
  said: Said
  file: string
  code: string
}

export const folderOf = (writer: Writer, sender: Sender) => `${writer.name}-${sender}`
export const jidOf = (folder: string) => `${folder}@chat`

let counter = 1000
export const taskIds: { id: string; group: string; status: Task['status'] }[] = []
export const victims: string[] = []

function caseOf(writer: Writer, op: Op, sender: Sender, target: Target, lies: boolean): Case {
  const number = ++counter
  const mark = `m${number}`
  const folder = folderOf(writer, sender)
  const main = folderOf(writer, 'main')
  const about = target === 'owner' || target === 'main' ? folderOf(writer, target) : folder
  const intent: Intent = { op, mark, own: { folder, jid: jidOf(folder) } }
  switch (families[op]) {
    case 'chat':
    case 'schedule':
      if (target !== 'own') Object.assign(intent, { folder: about, jid: jidOf(about) })
      if (target === 'nobody') Object.assign(intent, { folder: 'nobody-there', jid: jidOf('nobody-there') })
      break
    case 'task':
      intent.taskId = String(1_000_000 + number)
      if (target !== 'nobody' && about !== folderOf(writer, 'stray')) {
        taskIds.push({ id: intent.taskId, group: about, status: op === 'resume_task' ? 'paused' : 'active' })
      }
      break
    case 'register':
      intent.folder = target === 'taken folder' ? folderOf(writer, 'owner').toUpperCase() : `new-${number}`
      intent.jid = target === 'taken chat' ? jidOf(folderOf(writer, 'owner')) : jidOf(`new-${number}`)
      break
    case 'unregister':
      intent.jid = jidOf(target === 'victim' ? `victim-${number}` : target === 'main' ? main : 'nobody-there')
      if (target === 'victim') victims.push(`victim-${number}`)
      break
    default:
  }
  // Everybody claims to be main, and main claims to be somebody else.
  const claimed = lies ? folderOf(writer, sender === 'main' ? 'other' : 'main') : folder
  const claims = {
    folder: claimed,
    jid: jidOf(claimed),
    isMain: (sender === 'main') !== lies,
    everywhere: lies,
  }
  const said = writer.says[op]?.(intent, claims)
  if (!said) throw new Error(`${writer.name} has no word for ${op}`)
  let code = verdict(op, sender, target)
  if (lies && sender !== 'stray') {
    // The one claim that is checked, and the files that may carry nothing but their own fields.
    if (writer.dialect === 'mdclaw') code = 'sender_mismatch'
    if (writer.dialect === 'hatchway') code = 'invalid_field'
    if (writer.name === 'pynchy' && op === 'refresh_groups') code = 'invalid_field'
  }
  return {
    title: `${sender}: ${op}, ${target}${lies ? ', with false claims' : ''}: ${code}`,
    writer,
    sender,
    target,
    lies,
    intent,
    said,
    file: writer.fileName(intent),
    code,
  }
}

function casesOf(writer: Writer): Case[] {
  const cases: Case[] = []
  for (const op of Object.keys(families).filter((name): name is Op => name in writer.says)) {
    const targets = writer.untargeted?.includes(op) ? (['own'] as const) : targetsOf[families[op]]
    for (const target of targets) {
      for (const sender of senders) {
        for (const lies of [false, true]) cases.push(caseOf(writer, op, sender, target, lies))
      }
    }
  }
  return cases
}

export const byWriter = writers.map(writer => ({ writer, name: writer.name, cases: casesOf(writer) }))
export const all = byWriter.flatMap(({ cases }) => cases)

export const fixture = (id: string, group: string, status: Task['status']): Task => ({
  id,
  group,
  jid: jidOf(group),
  created_by: group,
  prompt: 'as it was',
  script: null,
  model: null,
  schedule_type: 'interval',
  schedule_value: '3600000',
  timezone: 'UTC',
  context_mode: 'group',
  status,
  next_run: '2099-01-01T00:00:00.000Z',
  last_run: null,
  last_result: null,
  created_at: '2026-01-01T00:00:00.000Z',
})
