import { randomBytes } from 'node:crypto'
import { appendFileSync, lstatSync, mkdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { createStream, document, drain, heeded, isThere, present, write } from './boxes.ts'
import { check, isRow, isTime, must, mustHave, rowsOf } from './evidence.ts'
import type { Kit } from './kit.ts'
import { checkStart } from './orders.ts'
import { createRun, saidAt } from './run.ts'

/** mdclaw's container: everything at /ipc and /data, envelopes, plain text between the markers, no session ids. */
const ipc = '/ipc'
const given = await document()
const { env } = process
const folder = String(given.groupFolder)
const jid = String(given.chatJid)
const who = { folder, jid, main: given.isMain === true }
const input = `${ipc}/input`
const closed = `${input}/_close`

const freshName = () => `${Date.now()}-${randomBytes(4).toString('hex')}.json`
const put = (directory: string, content: object, name = freshName()): string => {
  write(`${ipc}/${directory}`, name, `.${name}.tmp`, content)
  return name
}
const envelope = (type: string, payload: object, source = folder) => ({ type, payload, source_group: source })
const command = (type: string, payload: object) => void put('tasks', envelope(type, payload))
const never = { schedule_type: 'once', schedule_value: '2099-01-31T09:30:00Z', chat_jid: jid }

const kit: Kit = {
  ipc,
  who,
  boxes: ['messages', 'tasks', 'input'],
  post: put,
  temporaryName: () => `.${freshName()}.tmp`,
  harmless: prompt => ({ directory: 'tasks', body: envelope('schedule_task', { prompt, ...never }) }),
  schedule: ({ prompt, type, value, mode, target }) =>
    command('schedule_task', {
      prompt,
      schedule_type: type,
      schedule_value: value,
      ...present({ context_mode: mode }),
      ...(target ? { chat_jid: target.jid } : {}),
    }),
  pause: task_id => command('pause_task', { task_id }),
  resume: task_id => command('resume_task', { task_id }),
  cancel: task_id => command('cancel_task', { task_id }),
  register: ({ jid, name, folder, trigger }) =>
    command('register_group', { name, folder, chat_jid: jid, trigger }),
  refreshBody: envelope('refresh_groups', {}),
  taskKeys: {
    always: [
      ...['id', 'group_folder', 'chat_jid', 'prompt', 'schedule_type', 'schedule_value', 'context_mode'],
      ...['next_run', 'last_run', 'last_result', 'status', 'created_at'],
    ],
    maybe: [],
    group: 'group_folder',
  },
  checkGroups(content) {
    if (!who.main) must(content === undefined, 'only the main group has available_groups.json')
    if (content === undefined) return []
    const groups = rowsOf(content)
    for (const group of groups) {
      mustHave(group, ['name', 'folder', 'trigger', 'added_at'], ['containerConfig', 'requiresTrigger'])
      must(typeof group.folder === 'string' && typeof group.trigger === 'string', JSON.stringify(group))
      must(isTime(group.added_at), `added_at is ${group.added_at}`)
    }
    return groups
  },
  own: {
    async 'other-source'() {
      put('tasks', envelope('schedule_task', { prompt: `${folder}: as main`, ...never }, `${folder}-not`))
    },
    async unasked() {
      await check('unasked', () => must(!isThere(`${ipc}/responses`), 'there is a directory of answers'))
    },
  },
}

await checkStart(kit, {
  document() {
    const maybe = ['sessionId', 'isScheduledTask', 'assistantName', 'script']
    mustHave(given, ['prompt', 'groupFolder', 'chatJid', 'isMain', 'secrets'], maybe)
    must(isRow(given.secrets), 'secrets have to be an object')
  },
  environment() {
    must(env.NANOCLAW_CHAT_JID === jid, `NANOCLAW_CHAT_JID is ${env.NANOCLAW_CHAT_JID}`)
    must(env.NANOCLAW_GROUP_FOLDER === folder, `NANOCLAW_GROUP_FOLDER is ${env.NANOCLAW_GROUP_FOLDER}`)
    must(env.NANOCLAW_IS_MAIN === (who.main ? '1' : '0'), `NANOCLAW_IS_MAIN is ${env.NANOCLAW_IS_MAIN}`)
  },
})

const scheduled = given.isScheduledTask === true
mkdirSync(input, { recursive: true })
const run = createRun({
  ...{ kit, scheduled, sessionId: undefined, closed, inbox: input },
  // What follows is put together by the container itself.
  said: new RegExp(`${saidAt.source}|^\\[[^\\]]+\\]: `),
})

const say = (text: string) =>
  process.stdout.write(`\n---NANOCLAW_OUTPUT_START---\n${text}\n---NANOCLAW_OUTPUT_END---\n`)

const texts = () =>
  drain(input).map(message => {
    void check('followup', () => {
      mustHave(message, ['sender', 'sender_name', 'content', 'timestamp'])
      must(typeof message.content === 'string' && isTime(message.timestamp), JSON.stringify(message))
    })
    return `[${message.sender_name}]: ${message.content ?? message.text}`
  })
const close = async () => {
  if (!isThere(closed)) return false
  await check('close', () => must(lstatSync(closed).size === 0, `${closed} is not empty`))
  return heeded(closed)
}

const stream = createStream(String(given.prompt))
const poll = async () => {
  for (;;) {
    await sleep(500)
    if ((await run.first()) === 'messages') for (const text of texts()) stream.push(text)
    if (await close()) return stream.end()
    for (const text of texts()) stream.push(text)
  }
}
// A scheduled one looks at nothing but its task.
if (!scheduled) void poll()

mkdirSync('/data/sessions', { recursive: true })
for await (const prompt of stream) {
  const result = await run.answer(prompt)
  if (result !== null) say(`${result}\nin plain words`)
  appendFileSync('/data/sessions/log.md', `## User\n${prompt}\n\n`)
  if (run.isLeaving()) process.exit(0)
  if (scheduled) stream.end()
}
process.exit(0)
