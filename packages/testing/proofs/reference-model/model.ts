import { type DialectName, folderSchema, type Group, type Outcome, type Task } from '@hatchway/protocol'
import type { Intent, Said, Writer } from '../../src/writers/writers.ts'

/**
 * What the host is supposed to be, as plainly as it can be said: groups, tasks, messages, answers and refused files
 * in memory, changed by one command after the other.
 */
export interface Posted {
  folder: string
  file: string
  said: Said
  writer: Writer
  intent: Intent
  /** it names another sender than its directory */
  lies: boolean
  /** it is no command at all */
  bad?: { code: string; unread: boolean }
  postedAt: number
}

export type OperatorAction =
  | { kind: 'task'; type: 'pause_task' | 'resume_task' | 'cancel_task'; taskId: string }
  | { kind: 'add'; folder: string; jid: string; main: boolean; dialect: DialectName }
  | { kind: 'remove'; folder: string }

type ModelGroup = Omit<Group, 'added_at' | 'last_activity' | 'channel'>
type Span = { from: number; to: number }
type ModelTask = Pick<
  Task,
  | 'id'
  | 'group'
  | 'jid'
  | 'created_by'
  | 'prompt'
  | 'schedule_type'
  | 'schedule_value'
  | 'context_mode'
  | 'status'
> & { nextRun: Span | null }

export interface Answer {
  id: string
  shape: NonNullable<Said['reply']>['shape']
  outcome: Outcome
}

export interface Model {
  groups: Map<string, ModelGroup>
  tasks: Map<string, ModelTask>
  messages: { group: string; jid: string; text: string }[]
  /** by path below ipc/ */
  answers: Map<string, Answer>
  /** code by folder and file */
  refused: Map<string, string>
  /** Takes note of a handled file. Answers how it had to end: `done`, a code, or the outcome it repeats. */
  handled(posted: Posted, outcome: Outcome, at: number): string | { repeats: Outcome }
  operated(action: OperatorAction, at: number): string
  /** an operator asks for a new decision */
  replayed(posted: Posted): void
}

const hour = { schedule_type: 'interval', schedule_value: '3600000' } as const

export function createModel(): Model {
  const groups: Model['groups'] = new Map()
  const tasks: Model['tasks'] = new Map()
  const messages: Model['messages'] = []
  const answers: Model['answers'] = new Map()
  const refused: Model['refused'] = new Map()
  const firstAnswers = new Map<string, Outcome>()
  let lastTask = 0

  const requestOf = ({ folder, said, intent }: Posted) =>
    said.reply && { key: `${folder}/${intent.requestId ?? intent.mark}`, ...said.reply }

  /** Whoever need not name a chat means the one its group has now, not the one it had when the file was written. */
  const chatOf = ({ writer, intent }: Posted, sender: ModelGroup) =>
    intent.jid ?? (writer.name === 'hatchway' || writer.name === 'mdclaw' ? sender.jid : intent.own.jid)

  const groupByJid = (jid: string) => [...groups.values()].find(group => group.jid === jid)
  const isTaken = (folder: string) =>
    [...groups.keys()].some(taken => taken.toLowerCase() === folder.toLowerCase())

  const nextRun = (
    schedule: { schedule_type: string; schedule_value: string },
    span: Span,
  ): Span | undefined => {
    if (schedule.schedule_type === 'once') {
      const at = Date.parse(schedule.schedule_value)
      return at > span.to ? { from: at, to: at } : undefined
    }
    const every = Number(schedule.schedule_value)
    return every >= 1000 ? { from: span.from + every, to: span.to + every } : undefined
  }

  const scheduleTask = (posted: Posted, sender: ModelGroup, span: Span): string => {
    const { intent, writer, folder } = posted
    const wanted = chatOf(posted, sender)
    const group = writer.name === 'pynchy' ? groups.get(intent.folder ?? folder) : groupByJid(wanted)
    const own = writer.name === 'pynchy' ? (intent.folder ?? folder) === folder : wanted === sender.jid
    if (!sender.main && !own) return 'forbidden'
    if (!group) return 'not_found'
    const chosen = writer.name === 'nanoclaw' || writer.name === 'hatchway' ? intent.taskId : undefined
    const id = chosen ?? (writer.name === 'nanoclaw' ? `task-${intent.mark}` : undefined)
    if (id !== undefined && tasks.has(id)) return 'conflict'
    const schedule = intent.schedule ?? hour
    const next = nextRun(schedule, span)
    if (!next) return 'bad_schedule'
    const given = id ?? freshTaskId()
    tasks.set(given, {
      id: given,
      group: group.folder,
      jid: group.jid,
      created_by: folder,
      prompt: intent.mark,
      schedule_type: schedule.schedule_type === 'once' ? 'once' : 'interval',
      schedule_value: schedule.schedule_value,
      context_mode: writer.name === 'novabot-document' ? 'isolated' : 'group',
      status: 'active',
      nextRun: next,
    })
    return 'done'
  }
  const freshTaskId = () => {
    do lastTask++
    while (tasks.has(String(lastTask)))
    return String(lastTask)
  }

  const changeTask = (
    { op, taskId = '', mark, schedule, status }: Intent,
    sender: ModelGroup | undefined,
    span: Span,
  ): string => {
    const task = tasks.get(taskId)
    if (!task) return 'not_found'
    if (sender && !sender.main && sender.folder !== task.group) return 'forbidden'
    if (task.status === 'cancelled') return 'wrong_state'
    const resumed = () => nextRun(task, span) ?? null
    const { status: before } = task
    if (op === 'cancel_task') Object.assign(task, { status: 'cancelled', nextRun: null })
    if (op === 'pause_task') task.status = 'paused'
    if (op === 'resume_task' && before === 'paused')
      Object.assign(task, { status: 'active', nextRun: resumed() })
    if (op !== 'update_task') return 'done'
    const next = schedule ? nextRun(schedule, span) : task.nextRun
    if (!next) return 'bad_schedule'
    const wakes = status === 'active' && before === 'paused'
    Object.assign(task, schedule, { prompt: mark, status: status ?? before, nextRun: next })
    if (wakes && !schedule) task.nextRun = resumed()
    if (status === 'cancelled') task.nextRun = null
    if (sender && !sender.main) task.created_by = sender.folder
    return 'done'
  }

  const register = (group: ModelGroup): string => {
    if (!folderSchema.safeParse(group.folder).success) return 'invalid_field'
    if (groupByJid(group.jid) || isTaken(group.folder)) return 'conflict'
    groups.set(group.folder, group)
    return 'done'
  }

  const unregister = (group: ModelGroup | undefined, byOperator: boolean): string => {
    if (!group) return 'not_found'
    if (group.main && !byOperator) return 'forbidden'
    for (const task of tasks.values()) {
      if (task.group === group.folder && task.status !== 'cancelled') {
        Object.assign(task, { status: 'cancelled', nextRun: null })
      }
    }
    groups.delete(group.folder)
    return 'done'
  }

  const decide = (posted: Posted, span: Span): string => {
    const { folder, writer, intent, bad, lies } = posted
    if (bad?.unread) return bad.code
    const sender = groups.get(folder)
    if (!sender) return 'unregistered_group'
    if (bad) return bad.code
    if (lies && writer.dialect === 'mdclaw') return 'sender_mismatch'
    if (lies && writer.dialect === 'hatchway') return 'invalid_field'
    if (lies && writer.name === 'pynchy' && intent.op === 'refresh_groups') return 'invalid_field'
    switch (intent.op) {
      case 'send_message': {
        const jid = chatOf(posted, sender)
        if (!sender.main && jid !== sender.jid) return 'forbidden'
        messages.push({ group: folder, jid, text: intent.mark })
        return 'done'
      }
      case 'schedule_task':
        return scheduleTask(posted, sender, span)
      case 'update_task':
      case 'pause_task':
      case 'resume_task':
      case 'cancel_task':
        return changeTask(intent, sender, span)
      case 'register_group': {
        const wanted = intent.folder ?? ''
        // A folder that cannot be one is seen before anybody asks who wants it.
        if (!folderSchema.safeParse(wanted).success) return 'invalid_field'
        if (!sender.main) return 'forbidden'
        const trigger = { hatchway: null, 'novabot-document': '@Nova' }[writer.name]
        return register({
          folder: wanted,
          jid: intent.jid ?? '',
          name: intent.mark,
          main: false,
          dialect: sender.dialect,
          trigger: trigger === undefined ? '@Andy' : trigger,
          requires_trigger: true,
        })
      }
      case 'unregister_group':
        return sender.main ? unregister(groupByJid(intent.jid ?? ''), false) : 'forbidden'
      case 'refresh_groups':
        return sender.main ? 'done' : 'forbidden'
      default:
        return 'unavailable'
    }
  }

  return {
    groups,
    tasks,
    messages,
    answers,
    refused,
    handled(posted, outcome, at) {
      const request = requestOf(posted)
      const first = request && firstAnswers.get(request.key)
      const code = first ? { repeats: first } : decide(posted, { from: posted.postedAt, to: at })
      if (request) {
        const id = posted.intent.requestId ?? posted.intent.mark
        firstAnswers.set(request.key, first ?? outcome)
        answers.set(`${posted.folder}/${request.path}`, {
          id,
          shape: request.shape,
          outcome: first ?? outcome,
        })
      }
      if (!first && code !== 'done') refused.set(`${posted.folder}/${posted.file}`, String(code))
      return code
    },
    operated(action, at) {
      switch (action.kind) {
        case 'task': {
          const intent: Intent = {
            op: action.type,
            mark: '',
            own: { folder: '', jid: '' },
            taskId: action.taskId,
          }
          return changeTask(intent, undefined, { from: at, to: at })
        }
        case 'add': {
          const { folder, jid, main, dialect } = action
          return register({
            folder,
            jid,
            name: folder,
            main,
            dialect,
            trigger: null,
            requires_trigger: !main,
          })
        }
        case 'remove':
          return unregister(groups.get(action.folder), true)
      }
    },
    replayed(posted) {
      refused.delete(`${posted.folder}/${posted.file}`)
      const request = requestOf(posted)
      if (request) firstAnswers.delete(request.key)
    },
  }
}
