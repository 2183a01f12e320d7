import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { document, isThere, log, present } from './boxes.ts'
import { check, must, mustHave } from './evidence.ts'
import type { Kit } from './kit.ts'
import { ipc, novaBotKit } from './novabot.ts'
import { checkStart } from './orders.ts'
import { createRun, newSessionId } from './run.ts'

/**
 * NovaBot as its document describes it: one prompt, one answer between its own markers, and files that are written
 * where they are read, under names that say what they are for.
 */
const given = await document()
const { CHAT_JID: jid = '', GROUP_FOLDER: folder = '', IS_MAIN: isMain } = process.env
const who = { folder, jid, main: isMain === 'true' }

/** Two in a millisecond would be one file. It is a tool that a model calls, which takes longer from one to the next. */
const betweenCallsMs = 250
let last = 0
const stamp = () => {
  while (Date.now() < last + betweenCallsMs);
  last = Date.now()
  return last
}
const put = (directory: string, name: string, content: object): string => {
  writeFileSync(`${ipc}/${directory}/${name}`, JSON.stringify(content))
  return name
}
const command = (verb: string, directory: string, content: object) =>
  void put(directory, `${verb}-${randomUUID()}.json`, { ...content, groupFolder: folder })
const message = (text: string, to = jid, claim = folder) => ({
  ...{ type: 'send_message', chatJid: to, message: text, groupFolder: claim },
})

const kit: Kit = {
  ...novaBotKit(who),
  boxes: ['messages', 'tasks', 'groups'],
  post: (directory, content, name = `${stamp()}.json`) => put(directory, name, content),
  harmless: text => ({ directory: 'messages', body: message(text) }),
  message: (text, { jid: to, claims, sender } = {}) =>
    sender === undefined
      ? void put('messages', `${stamp()}.json`, message(text, to, claims ? 'main' : folder))
      : undefined,
  schedule: ({ prompt, type, value, mode = 'isolated', target }) =>
    command('schedule', 'tasks', {
      type: 'schedule_task',
      prompt,
      schedule_type: type,
      schedule_value: value,
      context_mode: mode,
      chatJid: target?.jid ?? jid,
    }),
  pause: taskId => command('pause', 'tasks', { type: 'pause_task', taskId }),
  resume: taskId => command('resume', 'tasks', { type: 'resume_task', taskId }),
  cancel: taskId => command('cancel', 'tasks', { type: 'cancel_task', taskId }),
  update(taskId, { prompt, type, value, status }) {
    const updates = present({ prompt, schedule_type: type, schedule_value: value, status })
    if (Object.keys(updates).length > 0) command('update', 'tasks', { type: 'update_task', taskId, updates })
  },
  register: ({ jid, name, folder, trigger }) =>
    command('register', 'groups', { type: 'register_group', jid, name, folder, trigger }),
  unregister: jid => command('unregister', 'groups', { type: 'unregister_group', jid }),
  refreshBody: { type: 'refresh_groups' },
  own: {
    async unasked() {
      await check('unasked', () => must(!isThere(`${ipc}/responses`), 'there is a directory of answers'))
    },
  },
}

await checkStart(kit, {
  document() {
    const maybe = ['sessionId', 'isScheduledTask', 'assistantName', 'agentName', 'script']
    mustHave(given, ['prompt', 'groupFolder', 'chatJid', 'isMain'], maybe)
  },
  environment() {
    must(given.chatJid === jid && given.groupFolder === folder, `CHAT_JID ${jid}, GROUP_FOLDER ${folder}`)
    must(isMain === String(given.isMain), `IS_MAIN is ${isMain}`)
  },
})
const run = createRun({
  kit,
  scheduled: given.isScheduledTask === true,
  sessionId: given.sessionId === undefined ? undefined : String(given.sessionId),
  closed: `${ipc}/input/_close`,
  inbox: `${ipc}/input`,
})
log('Starting agent...')
const result = await run.answer(String(given.prompt))
console.log('---NOVABOT_OUTPUT_START---')
console.log(JSON.stringify({ status: 'success', result, newSessionId }))
console.log('---NOVABOT_OUTPUT_END---')
if (run.isLeaving()) process.exit(0)
