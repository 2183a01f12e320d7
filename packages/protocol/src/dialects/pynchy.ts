import { type CommandType, commandFrom } from '../commands.ts'
import type { Dialect, IncomingFile, Translation } from '../dialect.ts'
import { refusal } from '../errors.ts'
import { misplaced, usualDirectories } from '../placement.ts'
import { readableType, unknownType } from '../refusal-text.ts'
import { requestOf } from '../requests.ts'
import { argumentsOf, isPlainObject, numberAsText, type Shape, shape } from './fields.ts'
import { flatShapes, readFlat } from './flat.ts'
import { closeSentinel, flatGroups, flatInput, flatTask, json, todosFile, visibleTasks } from './outgoing.ts'
import { messagesPrompt } from './said.ts'

const ownShapes: ReadonlyMap<string, Shape> = new Map([
  [
    'schedule_host_job',
    shape('schedule_host_job', {
      name: 'name',
      command: 'command',
      schedule_type: 'schedule_type',
      schedule_value: { names: ['schedule_value'], read: numberAsText },
      cwd: 'cwd',
      timeout_seconds: 'timeout_seconds',
    }),
  ],
  [
    'create_periodic_agent',
    shape('create_periodic_agent', {
      name: 'name',
      schedule: 'schedule',
      prompt: 'prompt',
      context_mode: 'context_mode',
      instructions: 'claude_md',
      jid: 'chat',
    }),
  ],
  [
    'deploy',
    shape('deploy', {
      rebuild: 'rebuildContainer',
      resume_prompt: 'resumePrompt',
      head: 'headSha',
      session_id: 'sessionId',
    }),
  ],
  ['reset_context', shape('reset_context', { message: 'message' })],
  ['finished_work', shape('finished_work', {})],
])

/** A signal carries nothing, so anything it does carry makes it something else. */
const readSignal = ({ body, directory }: IncomingFile): Translation => {
  const type = readableType(body.signal)
  const extra = Object.keys(body).some(key => key !== 'signal' && key !== 'timestamp')
  if (extra) {
    const command = refusal('invalid_field', 'signal: no other field may stand beside it but timestamp')
    return { dialect: 'pynchy', type, command }
  }
  if (body.signal !== 'refresh_groups') {
    const command =
      typeof body.signal === 'string'
        ? unknownType(body.signal)
        : refusal('invalid_field', 'signal: must be a string')
    return { dialect: 'pynchy', type, command }
  }
  const command = misplaced(directory, ['tasks']) ?? commandFrom('refresh_groups', {}, String)
  return { dialect: 'pynchy', type, command }
}

/** What a request asks for: the command and its payload, and how the container calls a field. */
interface Question {
  command: CommandType
  payload: Record<string, unknown>
  name?: Record<string, string>
}

/** Of each object in a list, the fields that a command knows. */
const picked = (list: unknown, names: readonly string[]): unknown =>
  Array.isArray(list)
    ? list.map(each =>
        isPlainObject(each)
          ? Object.fromEntries(names.filter(name => each[name] != null).map(name => [name, each[name]]))
          : each,
      )
    : list

/** Pynchy's agents may write more beside a question than is asked here: a heading, how many may be chosen. */
const questionsOf = (questions: unknown): unknown => {
  const known = picked(questions, ['question', 'options'])
  if (!Array.isArray(known)) return known
  return known.map(each =>
    isPlainObject(each) && each.options !== undefined
      ? { ...each, options: picked(each.options, ['label', 'description']) }
      : each,
  )
}

const questionOf = (body: IncomingFile['body'], type: string): Question | undefined => {
  if (type.startsWith('service:')) {
    const tool = type.slice('service:'.length)
    const named = argumentsOf(body, ['type', 'request_id', 'requestId'])
    return { command: 'call_service', payload: { tool, arguments: named }, name: { tool: 'type' } }
  }
  if (type === 'ask_user:ask')
    return { command: 'ask_user', payload: { questions: questionsOf(body.questions) } }
  if (type === 'security:bash_check') return { command: 'check_shell', payload: { command: body.command } }
  if (type === 'sync_worktree_to_main') return { command: 'sync_worktree', payload: {} }
  return undefined
}

const requestTypes = /^(?:service:|ask_user:|security:|sync_worktree_to_main$)/

/** Whoever asks waits for the answer, so a request without an id to answer to is not one. */
const readRequest = ({ body, directory }: IncomingFile, type: string): Translation => {
  const { reply, fault } = requestOf(body)
  const translation = { dialect: 'pynchy' as const, type: readableType(type) }
  if (!reply) {
    const name = type === 'sync_worktree_to_main' ? 'requestId' : 'request_id'
    return { ...translation, command: fault ?? refusal('invalid_field', `${name}: is required`) }
  }
  const question = questionOf(body, type)
  if (!question) return { ...translation, command: unknownType(type), reply }
  const { command, payload, name } = question
  const nameOf = ([first, ...deeper]: readonly PropertyKey[]) =>
    [name?.[String(first)] ?? first, ...deeper].map(String).join('.')
  return {
    ...translation,
    command: misplaced(directory, usualDirectories(command)) ?? commandFrom(command, payload, nameOf),
    reply,
  }
}

export const pynchy: Dialect = {
  name: 'pynchy',
  directories: ['messages', 'tasks', 'input', 'responses', 'merge_results', 'output'],
  recognise(file) {
    const { body } = file
    const { type } = body
    if (typeof type === 'string' && requestTypes.test(type)) return readRequest(file, type)
    if (body.signal !== undefined) return readSignal(file)
    if (typeof type !== 'string') return undefined
    const own = ownShapes.get(type)
    if (own) return readFlat('pynchy', file, type, own)
    const flat = body.targetGroup !== undefined ? flatShapes.get(type) : undefined
    return flat && readFlat('pynchy', file, type, flat)
  },
  tasks: (tasks, viewer) =>
    json(
      'current_tasks.json',
      visibleTasks(tasks, viewer).map(task => ({
        ...(task.job ? { type: 'host', name: task.job.name, command: task.job.command } : { type: 'agent' }),
        ...flatTask(task),
      })),
    ),
  groups: flatGroups,
  todos: todosFile,
  input: flatInput(messagesPrompt),
  close: closeSentinel,
}
