import { randomBytes } from 'node:crypto'
import { readFileSync, unlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { answer, drain, heeded, write } from './agent.ts'

/** Behaves as Pynchy's container does: document in input/initial.json, everything it says in files of output/. */
const ipc = '/workspace/ipc'
const first = `${ipc}/input/initial.json`
const input: {
  messages: { sender_name: string; content: string }[]
  group_folder: string
  chat_jid: string
  is_admin: boolean
  session_id: string | null
  is_scheduled_task: boolean
} = JSON.parse(readFileSync(first, 'utf8'))
unlinkSync(first)

const post = (directory: string, content: object) => {
  const name = `${Date.now()}-${randomBytes(3).toString('hex')}.json`
  write(`${ipc}/${directory}`, name, `${name}.tmp`, { ...content, timestamp: new Date().toISOString() })
}
const put = (content: object) => {
  const name = `${process.hrtime.bigint()}.json`
  write(`${ipc}/output`, name, `${name}.tmp`, { status: 'success', ...content })
}
const texts = () => drain(`${ipc}/input`).flatMap(({ type, text }) => (type === 'message' ? [`${text}`] : []))

heeded(`${ipc}/input/_close`)
const xml = input.messages.map(
  ({ sender_name, content }) => `<message sender="${sender_name}">${content}</message>`,
)
let prompt = [...xml, ...texts()].join('\n')
const session = `${input.session_id ?? 'pynchy'}-1`
for (;;) {
  put({ type: 'system', system_subtype: 'init', system_data: { session_id: session } })
  put({ type: 'thinking', thinking: 'let me see' })
  put({ type: 'tool_use', tool_name: 'Read', tool_input: { file_path: '/workspace/group/notes.md' } })
  put({
    type: 'tool_result',
    tool_result_id: 't1',
    tool_result_content: 'no notes',
    tool_result_is_error: false,
  })
  const facts = {
    dialect: 'pynchy',
    session: input.session_id,
    scheduled: input.is_scheduled_task,
    main: input.is_admin,
    jid: [input.chat_jid, process.env.PYNCHY_CHAT_JID],
    folder: [input.group_folder, process.env.PYNCHY_GROUP_FOLDER],
    environment: process.env.PYNCHY_IS_ADMIN,
    cwd: process.cwd(),
  }
  const result = await answer(prompt, facts, {
    sendMessage: text =>
      post('messages', { type: 'message', chatJid: input.chat_jid, text, groupFolder: input.group_folder }),
    schedule: (prompt, at) =>
      post('tasks', {
        type: 'schedule_task',
        prompt,
        schedule_type: 'once',
        schedule_value: at.toISOString(),
        context_mode: 'group',
        targetGroup: input.group_folder,
        createdBy: input.group_folder,
      }),
  })
  put({ type: 'text', text: 'here it is' })
  put({ type: 'result', result, new_session_id: session })
  put({ type: 'result', result: null, new_session_id: session })

  let next: string[] = []
  let closed = heeded(`${ipc}/input/_close`)
  while (!closed && next.length === 0) {
    next = texts()
    if (next.length === 0) await sleep(500)
    closed = heeded(`${ipc}/input/_close`)
  }
  if (next.length === 0) break
  prompt = next.join('\n')
}
