import type { Dialect, IncomingFile } from '../dialect.ts'
import { type Shape, shape } from './fields.ts'
import { flatShapes, readFlat, taskByFolder } from './flat.ts'
import { flatGroups, flatTasks, json } from './outgoing.ts'
import { messagesPrompt } from './said.ts'

const jid = { names: ['chatJid'], required: true } as const

const speech = (text: unknown, title: unknown) =>
  text == null || text === '' ? undefined : { speech: title == null ? { text } : { text, title } }

/** `send_message` is the document's word, `reply` and `speak` the code's. */
const ownShapes: ReadonlyMap<string, Shape> = new Map([
  ['send_message', shape('send_message', { jid, text: 'message' })],
  [
    'reply',
    shape('send_message', { jid, text: 'text' }, { also: body => speech(body.audio_text, body.audio_title) }),
  ],
  [
    'speak',
    shape(
      'send_message',
      { jid: 'chatJid', text: 'text' },
      { directories: ['audio'], also: body => speech(body.text, body.title) },
    ),
  ],
])

/** What NovaBot writes differently in files of the shared shape. */
const isNovaBots = (type: string, { directory, body }: IncomingFile): boolean =>
  directory === 'groups' ||
  type === 'unregister_group' ||
  (type === 'update_task' && body.updates !== undefined) ||
  (type === 'schedule_task' && body.chatJid !== undefined && body.targetJid === undefined)

/**
 * Its code names the group that a task is for by its folder, beside the own chat; its document by its chat, beside the
 * own folder.
 */
const namesOtherGroup = (type: string, { body, sender }: IncomingFile): boolean =>
  type === 'schedule_task' && body.groupFolder != null && sender !== undefined && body.groupFolder !== sender

export const novabot: Dialect = {
  name: 'novabot',
  directories: ['messages', 'tasks', 'groups', 'audio', 'input', 'inbox', 'outbox', 'control'],
  recognise(file) {
    const { type } = file.body
    if (typeof type !== 'string') return undefined
    const own = ownShapes.get(type)
    if (own) return readFlat('novabot', file, type, own)
    if (!isNovaBots(type, file)) return undefined
    const flat = namesOtherGroup(type, file) ? taskByFolder : flatShapes.get(type)
    return flat && readFlat('novabot', file, type, flat)
  },
  tasks: flatTasks,
  groups: flatGroups,
  input: (message, name, context) =>
    json(`inbox/${name}.json`, {
      id: name,
      prompt: messagesPrompt([message], context),
      timestamp: message.timestamp,
    }),
  close: timestamp => json('control/shutdown.json', { type: 'shutdown', timestamp }),
  interrupt: timestamp => json('control/interrupt.json', { type: 'interrupt', timestamp }),
}
