import { commandFrom } from '../commands.ts'
import type { IncomingFile, Translation } from '../dialect.ts'
import { misplaced, usualDirectories } from '../placement.ts'
import { requestOf } from '../requests.ts'
import type { DialectName } from '../snapshots.ts'
import { emptyAsAbsent, idAsText, numberAsText, payloadOf, type Shape, shape, writtenName } from './fields.ts'
import { asksForMounts } from './mounts.ts'

/**
 * The flat shape: type and fields side by side. NanoClaw began it; its forks, NovaBot and Pynchy kept it and each
 * changed a name or two. A file is read the same way whoever wrote it, so all the names are known here, and a
 * dialect's own file only says what it alone writes.
 */
const taskId = { names: ['taskId', 'task_id'], read: idAsText } as const
const jid = { names: ['chatJid'], required: true } as const

/** NanoClaw's own host takes any other value to mean a fresh session. */
const contextMode = {
  names: ['context_mode'],
  read: (value: unknown) => (value === 'group' ? 'group' : 'isolated'),
  absent: 'isolated',
} as const

const schedule = {
  schedule_type: 'schedule_type',
  schedule_value: { names: ['schedule_value'], read: numberAsText },
} as const

const mountsRequested = (body: Readonly<Record<string, unknown>>) =>
  asksForMounts(body.containerConfig) ? { mounts_requested: true } : undefined

const newTask = {
  task_id: taskId,
  prompt: 'prompt',
  ...schedule,
  context_mode: contextMode,
  script: 'script',
  model: { names: ['model'], read: emptyAsAbsent },
} as const

/** In NovaBot's files `groupFolder` may name the group that the task is for. Everywhere else it is a claim. */
export const taskByFolder: Shape = shape('schedule_task', { ...newTask, group: 'groupFolder' })

export const flatShapes: ReadonlyMap<string, Shape> = new Map([
  [
    'message',
    shape('send_message', { jid, text: 'text', sender: { names: ['sender'], read: emptyAsAbsent } }),
  ],
  ['reaction', shape('react', { jid, emoji: 'emoji', message_id: 'messageId' })],
  [
    'schedule_task',
    shape('schedule_task', {
      ...newTask,
      jid: { names: ['targetJid', 'chatJid'] },
      group: 'targetGroup',
    }),
  ],
  [
    'update_task',
    shape(
      'update_task',
      {
        task_id: taskId,
        prompt: 'prompt',
        ...schedule,
        context_mode: 'context_mode',
        script: 'script',
        model: 'model',
        status: 'status',
      },
      { within: 'updates' },
    ),
  ],
  ['pause_task', shape('pause_task', { task_id: taskId })],
  ['resume_task', shape('resume_task', { task_id: taskId })],
  ['cancel_task', shape('cancel_task', { task_id: taskId })],
  [
    'register_group',
    shape(
      'register_group',
      {
        jid: 'jid',
        name: 'name',
        folder: 'folder',
        trigger: { names: ['trigger', 'trigger_pattern'] },
        requires_trigger: { names: ['requiresTrigger', 'requires_trigger'] },
        channel: 'channel',
      },
      { also: mountsRequested },
    ),
  ],
  ['unregister_group', shape('unregister_group', { jid: 'jid' })],
  ['refresh_groups', shape('refresh_groups', {})],
])

export const readFlat = (
  dialect: DialectName,
  file: IncomingFile,
  type: string,
  flat: Shape,
): Translation => {
  const { body, directory } = file
  const { reply, fault } = requestOf(body)
  const answered = reply ? { dialect, type, reply } : { dialect, type }
  const refused = fault ?? misplaced(directory, flat.directories ?? usualDirectories(flat.command))
  if (refused) return { ...answered, command: refused }
  const read = payloadOf(flat, body)
  if ('code' in read) return { ...answered, command: read }
  return { ...answered, command: commandFrom(flat.command, read.payload, writtenName(flat, body)) }
}
