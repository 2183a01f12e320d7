import { randomBytes, randomUUID } from 'node:crypto'
import { lstatSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { awaited, drain, heeded, isThere, namesIn, present, take, write } from './boxes.ts'
import { check, isTime, must, mustHave, note, type Row, rowsOf } from './evidence.ts'
import type { Answer, Kit } from './kit.ts'
import { checkFlatGroups, flatTaskKeys } from './nanoclaw.ts'
import { checkStart, ordersIn } from './orders.ts'
import { Broken, createRun, lastSession, newSessionId } from './run.ts'

/** Pynchy's container: document in input/initial.json, everything it says in files of output/, requests with answers. */
const ipc = '/workspace/ipc'
const input = `${ipc}/input`
const closed = `${input}/_close`
const given = take(`${input}/initial.json`)
const { env } = process
const folder = String(given.group_folder)
const jid = String(given.chat_jid)
const who = { folder, jid, main: given.is_admin === true }
const messages = rowsOf(given.messages)

const freshName = () => `${Date.now()}-${randomBytes(3).toString('hex')}.json`
const post = (directory: string, content: object, name = freshName()): string => {
  const stamped = { ...content, timestamp: new Date().toISOString() }
  write(`${ipc}/${directory}`, name, `${name}.tmp`, stamped)
  return name
}
const message = (text: string, to = jid, more: object = {}) => ({
  ...{ type: 'message', chatJid: to, text, groupFolder: folder, ...more },
})
const task = (type: string, taskId: string) =>
  void post('tasks', { type, taskId, groupFolder: folder, isAdmin: who.main })

/** answers of responses/ are looked for five times a second for five minutes, those of merge_results/ as dialects.md says */
const response = (id: string) => awaited(`${ipc}/responses/${id}.json`, 200, 300_000)
const merged = (id: string) => awaited(`${ipc}/merge_results/${id}.json`, 300, 120_000)

const answered = (answer: Row): Answer => {
  mustHave(answer, [], ['result', 'error'])
  must(Object.keys(answer).length === 1, JSON.stringify(answer))
  const { error, result } = answer
  if (error !== undefined) must(typeof error === 'string', JSON.stringify(answer))
  return { ok: error === undefined, result: { result }, error: String(error) }
}
const decided = (answer: Row): Answer => {
  mustHave(answer, ['decision', 'result'], ['reason'])
  const { decision, reason } = answer.result as Row
  must(decision === answer.decision && reason === answer.reason, JSON.stringify(answer))
  // Its hook reads `result` alone, and runs whatever is not denied there.
  return { ok: decision !== 'deny', result: answer, error: String(reason) }
}
const synced = (answer: Row): Answer => {
  mustHave(answer, ['success', 'message'])
  must(typeof answer.success === 'boolean' && typeof answer.message === 'string', JSON.stringify(answer))
  return { ok: answer.success, result: answer, error: answer.message }
}

const ask: Kit['ask'] = async ({ command, input: given, id = randomUUID().replaceAll('-', '') }) => {
  if (command === 'sync_worktree') {
    const requestId = freshName().replace('.json', '')
    post('tasks', { type: 'sync_worktree_to_main', groupFolder: folder, requestId })
    return synced(await merged(requestId))
  }
  if (command === 'check_shell') {
    post('tasks', { type: 'security:bash_check', request_id: id, ...given, groupFolder: folder })
    return decided(await response(id))
  }
  const type = command === 'ask_user' ? 'ask_user:ask' : `service:${given.tool}`
  const fields = command === 'ask_user' ? given : given.arguments
  post('tasks', { type, request_id: id, ...(fields as object) })
  const answer = answered(await response(id))
  // What it is told stands beside nothing else.
  return { ...answer, result: answer.ok ? (answer.result.result as Row) : {} }
}

/** the fields of its own tools */
const words: Readonly<Record<string, string>> = {
  rebuild: 'rebuildContainer',
  resume_prompt: 'resumePrompt',
  head: 'headSha',
  session_id: 'sessionId',
  instructions: 'claude_md',
  jid: 'chat',
}
const tell: Kit['tell'] = async (command, given) => {
  const fields = Object.entries(given).map(([name, value]) => [words[name] ?? name, value])
  post('tasks', { type: command, ...Object.fromEntries(fields), chatJid: jid, groupFolder: folder })
}
/** Its tools that end the container do that before they could have an answer, and put up the sign themselves. */
const leave = (): never => {
  writeFileSync(closed, '')
  process.exit(0)
}

const kit: Kit = {
  ipc,
  who,
  boxes: ['messages', 'tasks', 'input', 'responses', 'merge_results', 'output'],
  ownRoot: true,
  post,
  temporaryName: () => `${freshName()}.tmp`,
  harmless: text => ({ directory: 'messages', body: message(text) }),
  message: (text, { jid: to, sender, claims } = {}) =>
    void post(
      'messages',
      message(text, to, {
        ...present({ sender }),
        ...(claims ? { groupFolder: 'main', isAdmin: true, isGod: true } : {}),
      }),
    ),
  schedule: ({ prompt, type, value, mode = 'group', target }) =>
    void post('tasks', {
      type: 'schedule_task',
      prompt,
      schedule_type: type,
      schedule_value: value,
      context_mode: mode,
      targetGroup: target?.folder ?? folder,
      createdBy: folder,
    }),
  pause: id => task('pause_task', id),
  resume: id => task('resume_task', id),
  cancel: id => task('cancel_task', id),
  register: ({ jid, name, folder, trigger, config }) =>
    void post('tasks', {
      ...{ type: 'register_group', jid, name, folder, trigger },
      ...present({ containerConfig: config }),
    }),
  refreshBody: { signal: 'refresh_groups' },
  taskKeys: { always: ['type', ...flatTaskKeys], maybe: ['name', 'command'], group: 'groupFolder' },
  checkGroups: checkFlatGroups(who.main),
  checkJob(job) {
    must(job.type === 'host' && job.name === 'main job', JSON.stringify(job))
    must(job.command === 'echo it ran > job-ran.txt', JSON.stringify(job))
  },
  ask,
  tell,
  own: {
    async signals() {
      post('tasks', { signal: 'refresh_groups' })
      post('tasks', { signal: 'refresh_groups', force: true })
    },
    async deploy(head) {
      await tell('deploy', {
        rebuild: false,
        resume_prompt: 'do resumed',
        head,
        session_id: newSessionId,
      })
    },
    async resumed() {
      await check('deploy', () => {
        const before = lastSession()
        must(given.session_id === before, `it is told ${given.session_id} and not ${before}`)
      })
    },
    async reset() {
      post('tasks', { type: 'reset_context', chatJid: jid, groupFolder: folder })
      note({ did: 'reset' })
      leave()
    },
    async 'reset-message'() {
      post('tasks', { type: 'reset_context', chatJid: jid, groupFolder: folder, message: 'do successor' })
      note({ did: 'reset-message' })
      leave()
    },
    async 'after-reset'() {
      await check('reset', () => must(given.session_id === null, `it is told ${given.session_id}`))
    },
    async successor() {
      await check('reset-message', () => must(given.session_id === null, `it is told ${given.session_id}`))
    },
    async finish() {
      await check('finished', () => must(given.is_scheduled_task === true, 'it is not scheduled'))
      post('tasks', { type: 'finished_work', chatJid: jid, groupFolder: folder })
      note({ did: 'finish' })
      leave()
    },
    async unasked() {
      await check('unasked', () => {
        const left = [...namesIn(`${ipc}/responses`), ...namesIn(`${ipc}/merge_results`)]
        must(left.length === 0, `it was answered: ${left.join(' ')}`)
      })
    },
  },
}

await checkStart(kit, {
  document() {
    for (const key of ['messages', 'group_folder', 'chat_jid', 'is_admin', 'session_id', 'is_scheduled_task'])
      must(key in given, `without ${key}`)
    for (const { sender_name, content, timestamp } of messages)
      must(typeof sender_name === 'string' && typeof content === 'string' && isTime(timestamp), 'a message')
  },
  environment() {
    must(env.PYNCHY_CHAT_JID === jid, `PYNCHY_CHAT_JID is ${env.PYNCHY_CHAT_JID}`)
    must(env.PYNCHY_GROUP_FOLDER === folder, `PYNCHY_GROUP_FOLDER is ${env.PYNCHY_GROUP_FOLDER}`)
    must(env.PYNCHY_IS_ADMIN === (who.main ? '1' : '0'), `PYNCHY_IS_ADMIN is ${env.PYNCHY_IS_ADMIN}`)
  },
})
const run = createRun({
  kit,
  scheduled: given.is_scheduled_task === true,
  sessionId: given.session_id === null ? undefined : String(given.session_id),
  closed,
  inbox: input,
})
heeded(closed)

const put = (content: object) => {
  const name = `${process.hrtime.bigint()}.json`
  write(`${ipc}/output`, name, `${name}.tmp`, { status: 'success', ...content })
}
const texts = () =>
  drain(input).flatMap(content => {
    void check('followup', () => {
      mustHave(content, ['type', 'text'])
      must(content.type === 'message' && typeof content.text === 'string', JSON.stringify(content))
    })
    return content.type === 'message' ? [String(content.text)] : []
  })
const close = async () => {
  if (!isThere(closed)) return false
  await check('close', () => must(lstatSync(closed).size === 0, `${closed} is not empty`))
  return heeded(closed)
}

const xml = messages.map(
  ({ sender_name, content }) => `<message sender="${sender_name}">${content}</message>`,
)
let prompt = [...xml, ...texts()].join('\n')
for (;;) {
  put({ type: 'system', system_subtype: 'init', system_data: { session_id: newSessionId } })
  put({ type: 'thinking', thinking: 'let me see' })
  put({ type: 'tool_use', tool_name: 'Read', tool_input: { file_path: '/workspace/group/notes.md' } })
  put({
    type: 'tool_result',
    tool_result_id: 't1',
    tool_result_content: 'no notes',
    tool_result_is_error: false,
  })
  try {
    const result = await run.answer(prompt)
    if (ordersIn(prompt).length > 0) put({ type: 'text', text: 'here it is' })
    put({ type: 'result', result, new_session_id: newSessionId })
    if (result !== null) put({ type: 'result', result: null, new_session_id: newSessionId })
  } catch (error) {
    if (!(error instanceof Broken)) throw error
    put({ type: 'result', status: 'error', result: null, new_session_id: newSessionId, error: error.message })
    process.exit(1)
  }
  if (run.isLeaving()) process.exit(0)

  let next: string[] = []
  for (;;) {
    const order = await run.first()
    if (order === 'messages') next = texts()
    if (next.length > 0 || (await close())) break
    next = texts()
    if (next.length > 0) break
    await sleep(500)
  }
  if (next.length === 0) break
  prompt = next.join('\n')
}
process.exit(0)
