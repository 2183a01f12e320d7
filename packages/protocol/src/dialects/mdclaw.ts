import { commandFrom } from '../commands.ts'
import type { Dialect, IncomingFile, Translation } from '../dialect.ts'
import { type Refusal, refusal } from '../errors.ts'
import { misplaced, usualDirectories } from '../placement.ts'
import { readableType, unknownType } from '../refusal-text.ts'
import { idAsText, isPlainObject, numberAsText, payloadOf, type Shape, shape, writtenName } from './fields.ts'
import { closeSentinel, json, visibleTasks } from './outgoing.ts'
import { withNotices } from './said.ts'

/** mdclaw's envelope: the fields in `payload`, and a claim in `source_group` that has to be true. */
const taskId = { names: ['task_id'], read: idAsText } as const

const shapes: ReadonlyMap<string, Shape> = new Map([
  [
    'schedule_task',
    shape('schedule_task', {
      prompt: 'prompt',
      schedule_type: 'schedule_type',
      schedule_value: { names: ['schedule_value'], read: numberAsText },
      context_mode: 'context_mode',
      jid: 'chat_jid',
    }),
  ],
  ['pause_task', shape('pause_task', { task_id: taskId })],
  ['resume_task', shape('resume_task', { task_id: taskId })],
  ['cancel_task', shape('cancel_task', { task_id: taskId })],
  ['refresh_groups', shape('refresh_groups', {})],
  [
    'register_group',
    shape('register_group', { jid: 'chat_jid', name: 'name', folder: 'folder', trigger: 'trigger' }),
  ],
])

const read = ({ body, directory }: IncomingFile): Translation['command'] => {
  const { type, payload = {}, source_group: claim } = body
  const found = typeof type === 'string' ? shapes.get(type) : undefined
  if (!found) return unknownType(type)
  if (typeof claim !== 'string') {
    return refusal('invalid_field', `source_group: ${claim == null ? 'is required' : 'must be a string'}`)
  }
  const refused: Refusal | undefined = misplaced(directory, usualDirectories(found.command))
  if (refused) return refused
  if (!isPlainObject(payload)) return refusal('invalid_field', 'payload: must be an object')
  const picked = payloadOf(found, payload, 'payload.')
  return 'code' in picked
    ? picked
    : commandFrom(found.command, picked.payload, writtenName(found, payload, 'payload.'))
}

export const mdclaw: Dialect = {
  name: 'mdclaw',
  directories: ['messages', 'tasks', 'input'],
  recognise(file) {
    const { body } = file
    if (body.payload === undefined && body.source_group === undefined) return undefined
    // a request of another dialect may have an argument of that name
    if (body.request_id !== undefined || body.requestId !== undefined) return undefined
    const translation: Translation = { dialect: 'mdclaw', type: readableType(body.type), command: read(file) }
    return typeof body.source_group === 'string'
      ? { ...translation, claimedSender: body.source_group }
      : translation
  },
  tasks: (tasks, viewer) =>
    json(
      'current_tasks.json',
      visibleTasks(tasks, viewer).map(task => ({
        id: task.id,
        group_folder: task.group,
        chat_jid: task.jid,
        prompt: task.prompt,
        schedule_type: task.schedule_type,
        schedule_value: task.schedule_value,
        context_mode: task.context_mode,
        next_run: task.next_run,
        last_run: task.last_run,
        last_result: task.last_result,
        status: task.status,
        created_at: task.created_at,
      })),
    ),
  groups: (groups, viewer) =>
    viewer.main
      ? json(
          'available_groups.json',
          groups.map(group => ({
            name: group.name,
            folder: group.folder,
            trigger: group.trigger ?? '',
            added_at: group.added_at,
            requiresTrigger: group.requires_trigger,
          })),
        )
      : undefined,
  // Its container puts them together as `[sender_name]: content`, and a name must not look like the end of one.
  input: ({ sender, sender_name, text, timestamp }, name, { notices }) =>
    json(`input/${name}.json`, {
      sender,
      sender_name: (sender_name || sender).replace(/[[\]\s\p{Cc}]+/gu, ' ').trim(),
      content: withNotices(notices, text),
      timestamp,
    }),
  close: closeSentinel,
}
