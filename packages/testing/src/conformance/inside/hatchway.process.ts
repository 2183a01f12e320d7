import { randomBytes, randomUUID } from 'node:crypto'
import { lstatSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  awaited,
  document,
  eventually,
  heeded,
  isThere,
  namesIn,
  present,
  readRow,
  take,
  write,
} from './boxes.ts'
import { check, isRow, isTime, must, mustHave, type Row, rowsOf } from './evidence.ts'
import type { Answer, Kit } from './kit.ts'
import { checkStart } from './orders.ts'
import { Broken, createRun, lastSession, newSessionId } from './run.ts'

/** Version 1 of Hatchway's own protocol, as somebody writes it who has read docs/protocol.md and uses nothing else. */
const ipc = '/workspace/ipc'
const input = `${ipc}/input`
const closed = `${input}/_close`
const given = await document()
const { env } = process
const group = isRow(given.group) ? given.group : {}
const folder = String(group.folder)
const jid = String(group.jid)
const who = { folder, jid, main: group.main === true }
const taskOf = isRow(given.task) ? given.task : undefined

let count = 0
const freshName = () =>
  `${Date.now()}-${String(++count).padStart(6, '0')}-${randomBytes(4).toString('hex')}.json`
const post = (directory: string, content: object, name = freshName()): string => {
  write(`${ipc}/${directory}`, name, `.${name}.tmp`, content)
  return name
}
const envelope = (type: string, payload: object, id: string = randomUUID()) => ({
  ...{ version: 1, id, type, payload, sent_at: new Date().toISOString() },
})
const command = (type: string, payload: object, directory = 'tasks') =>
  void post(directory, envelope(type, payload))

const received = (id: string, answer: Row): Answer => {
  mustHave(answer, ['version', 'id', 'ok', answer.ok === true ? 'result' : 'error'])
  must(answer.version === 1 && answer.id === id, JSON.stringify(answer))
  if (answer.ok === true) return { ok: true, result: answer.result as Row, error: '' }
  must(isRow(answer.error), JSON.stringify(answer))
  mustHave(answer.error, ['code', 'message'])
  return { ok: false, result: {}, error: `${answer.error.code}: ${answer.error.message}` }
}
const ask: Kit['ask'] = async ({ command, input, id = randomUUID() }) => {
  post('tasks', envelope(command, input, id))
  return received(id, await awaited(`${ipc}/responses/${id}.json`, 100, 300_000))
}

const kit: Kit = {
  ipc,
  who,
  boxes: ['messages', 'tasks', 'input', 'responses'],
  post,
  temporaryName: () => `.${freshName()}.tmp`,
  harmless: text => ({ directory: 'messages', body: envelope('send_message', { text }) }),
  message: (text, { jid: to, sender, claims } = {}) =>
    void post('messages', {
      ...envelope('send_message', {
        text,
        ...present({ jid: to, sender }),
      }),
      ...(claims ? { groupFolder: 'main', isMain: true } : {}),
    }),
  schedule: ({ prompt, type, value, mode, target, id, script, model }) =>
    command('schedule_task', {
      prompt,
      schedule_type: type,
      schedule_value: value,
      ...present({ context_mode: mode }),
      ...(target ? { group: target.folder } : {}),
      ...present({ task_id: id, script, model }),
    }),
  pause: task_id => command('pause_task', { task_id }),
  resume: task_id => command('resume_task', { task_id }),
  cancel: task_id => command('cancel_task', { task_id }),
  update: (task_id, { prompt, type, value, script, status }) =>
    command('update_task', {
      task_id,
      ...present({ prompt, schedule_type: type, schedule_value: value, script, status }),
    }),
  register: ({ jid, name, folder, trigger, needsTrigger }) =>
    command('register_group', {
      ...{ jid, name, folder, trigger },
      ...present({ requires_trigger: needsTrigger }),
    }),
  unregister: jid => command('unregister_group', { jid }),
  get refreshBody() {
    return envelope('refresh_groups', {})
  },
  taskKeys: {
    always: [
      ...['id', 'group', 'jid', 'created_by', 'prompt', 'script', 'model', 'schedule_type', 'schedule_value'],
      ...['timezone', 'context_mode', 'status', 'next_run', 'last_run', 'last_result', 'created_at'],
    ],
    maybe: ['job'],
    group: 'group',
  },
  checkGroups(content) {
    must(isRow(content), 'available_groups.json is not an object')
    mustHave(content, ['groups', 'synced_at'])
    const groups = rowsOf(content.groups)
    must(who.main || groups.length === 0, `it is shown ${groups.length} groups`)
    for (const group of groups)
      mustHave(group, [
        ...['folder', 'jid', 'name', 'main', 'dialect', 'trigger', 'requires_trigger', 'channel'],
        ...['added_at', 'last_activity'],
      ])
    return groups
  },
  checkJob(task) {
    must(isRow(task.job) && task.job.name === 'main job', JSON.stringify(task))
    mustHave(task.job, ['name', 'command', 'cwd', 'user', 'timeout_seconds'])
  },
  ask,
  async tell(type, payload) {
    await ask({ command: type, input: payload })
  },
  own: {
    async reactions() {
      command('react', { emoji: '👍', message_id: 'message-42' }, 'messages')
      command('react', { emoji: '🎉' }, 'messages')
    },
    async receipts() {
      await check('receipt', async () => {
        const { ok, result, error } = await ask({ command: 'refresh_groups', input: {} })
        must(ok && typeof result.groups === 'number', error)
      })
      await check('receipt-refused', async () => {
        const { ok, error } = await ask({ command: 'pause_task', input: { task_id: 'none-such' } })
        must(!ok && error.startsWith('not_found: '), error)
        return error
      })
      await check('services', () => {
        const listing = readRow(`${ipc}/services.json`)
        mustHave(listing, ['tools', 'questions', 'commands'])
        const tools = rowsOf(listing.tools)
        must(
          tools.some(({ name }) => name === 'count'),
          'a service is missing',
        )
        const maybe = ['output_schema']
        for (const tool of tools)
          mustHave(
            tool,
            [
              'name',
              'title',
              'description',
              'service',
              'input_schema',
              'annotations',
              'answers',
              'timeout_ms',
            ],
            maybe,
          )
        for (const offer of rowsOf(listing.commands)) mustHave(offer, ['command', 'timeout_ms'])
      })
      await check('progress', async () => {
        const id = randomUUID()
        post('tasks', envelope('call_service', { tool: 'count', arguments: { to: 2, slowly: true } }, id))
        const path = `${ipc}/responses/${id}.progress.json`
        await eventually('its progress', () => isThere(path))
        const progress = readRow(path)
        mustHave(progress, ['version', 'id', 'progress'], ['total', 'message'])
        must(progress.id === id && typeof progress.progress === 'number', JSON.stringify(progress))
        const { ok, error } = received(id, await awaited(`${ipc}/responses/${id}.json`, 100, 60_000))
        must(ok, error)
        must(!isThere(path), 'its progress is still there')
      })
      await check('take-back', async () => {
        const id = randomUUID()
        post('tasks', envelope('call_service', { tool: 'wait', arguments: {} }, id))
        const back = await ask({ command: 'cancel_request', input: { request_id: id } })
        must(back.ok, back.error)
        const { error } = received(id, await awaited(`${ipc}/responses/${id}.json`, 100, 60_000))
        must(error.startsWith('cancelled: '), error)
      })
    },
    async deploy(head) {
      command('deploy', { rebuild: false, resume_prompt: 'do resumed', head, session_id: newSessionId })
    },
    async resumed() {
      await check('deploy', () => {
        const before = lastSession()
        must(given.session_id === before, `it is told ${given.session_id} and not ${before}`)
      })
    },
    async reset() {
      await ask({ command: 'reset_context', input: {} })
    },
    async 'reset-message'() {
      await ask({ command: 'reset_context', input: { message: 'do successor' } })
    },
    async 'after-reset'() {
      await check('reset', () => must(given.session_id === null, `it is told ${given.session_id}`))
    },
    async successor() {
      await check('reset-message', () => must(given.session_id === null, `it is told ${given.session_id}`))
    },
    async finish() {
      await check('finished', async () => {
        const { ok, error } = await ask({ command: 'finished_work', input: {} })
        must(ok, error)
      })
    },
  },
}

await checkStart(kit, {
  document() {
    const always = [
      ...['version', 'run_id', 'kind', 'group', 'assistant', 'timezone', 'session_id', 'model', 'task'],
      ...['inputs', 'context', 'driver', 'events'],
    ]
    mustHave(given, always, ['notices', 'repository'])
    mustHave(given.group, ['folder', 'name', 'jid', 'main'])
    for (const one of rowsOf(given.inputs)) {
      mustHave(one, ['id', 'text', 'sender', 'sender_name', 'timestamp'])
      must(isTime(one.timestamp), JSON.stringify(one))
    }
  },
  environment() {
    must(env.HATCHWAY_GROUP === folder && env.HATCHWAY_JID === jid, `HATCHWAY_JID is ${env.HATCHWAY_JID}`)
    must(env.HATCHWAY_MAIN === (who.main ? '1' : '0'), `HATCHWAY_MAIN is ${env.HATCHWAY_MAIN}`)
    must(env.HATCHWAY_IPC === ipc && statSync(env.HATCHWAY_IPC).isDirectory(), 'HATCHWAY_IPC')
  },
})
const run = createRun({
  kit,
  scheduled: given.kind === 'task',
  sessionId: given.session_id === null ? undefined : String(given.session_id),
  script: taskOf?.script == null ? undefined : String(taskOf.script),
  closed,
  inbox: input,
})

const emit = (event: object) => process.stdout.write(`\u001e${JSON.stringify(event)}\n`)
const close = async () => {
  if (!isThere(closed)) return false
  await check('close', () => must(lstatSync(closed).size === 0, `${closed} is not empty`))
  return heeded(closed)
}
interface Told {
  id: string
  text: string
}
const texts = (): Told[] =>
  namesIn(input).map(name => {
    const content = take(`${input}/${name}`)
    void check('followup', () => {
      mustHave(content, ['version', 'type', 'text', 'sender', 'sender_name', 'timestamp'])
      must(content.version === 1 && content.type === 'message', JSON.stringify(content))
    })
    return { id: name.replace('.json', ''), text: String(content.text) }
  })

emit({ type: 'ready' })
let next: Told[] = rowsOf(given.inputs).map(({ id, text }) => ({ id: String(id), text: String(text) }))
for (;;) {
  emit({ type: 'used', inputs: next.map(({ id }) => id) })
  emit({ type: 'step', kind: 'thinking', text: 'let me see' })
  emit({ type: 'step', kind: 'tool_call', name: 'Read', text: '{"file_path":"/workspace/group/notes.md"}' })
  emit({ type: 'step', kind: 'tool_result', text: 'no notes' })
  try {
    const text = await run.answer(next.map(told => told.text).join('\n'))
    emit({ type: 'step', kind: 'text', text: 'here it is' })
    emit({ type: 'result', text, session_id: newSessionId })
  } catch (error) {
    if (!(error instanceof Broken)) throw error
    emit({ type: 'error', message: error.message, session_id: newSessionId })
    process.exit(1)
  }
  if (run.isLeaving()) process.exit(0)
  next = []
  for (;;) {
    const order = await run.first()
    if (order === 'messages') next = texts()
    if (next.length > 0 || (await close())) break
    next = texts()
    if (next.length > 0) break
    await sleep(200)
  }
  if (next.length === 0) break
}
process.exit(0)
