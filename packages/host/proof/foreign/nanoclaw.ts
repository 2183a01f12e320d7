import { mkdirSync } from 'node:fs'
import { answer, createStream, document, drain, heeded, log, write } from './agent.ts'

/** Behaves as NanoClaw's container does: document on stdin, follow-ups into the running query, results between markers. */
const ipc = '/workspace/ipc'
const input = await document()
const env = process.env
log(`Received input for group: ${input.groupFolder}`)

const post = (directory: string, content: object) => {
  const name = `${Date.now()}-${Math.random().toString(36).slice(2, 8)}.json`
  write(`${ipc}/${directory}`, name, `${name}.tmp`, { ...content, timestamp: new Date().toISOString() })
}
const say = (output: object) => {
  console.log('---NANOCLAW_OUTPUT_START---')
  console.log(JSON.stringify(output))
  console.log('---NANOCLAW_OUTPUT_END---')
}

mkdirSync(`${ipc}/input`, { recursive: true })
heeded(`${ipc}/input/_close`)
const texts = () => drain(`${ipc}/input`).flatMap(({ type, text }) => (type === 'message' ? [`${text}`] : []))
const stream = createStream([input.prompt, ...texts()].join('\n'))
const poll = () => {
  if (heeded(`${ipc}/input/_close`)) return stream.end()
  for (const text of texts()) stream.push(text)
  setTimeout(poll, 500)
}
setTimeout(poll, 500)

const newSessionId = `${input.sessionId ?? 'nanoclaw'}-1`
for await (const prompt of stream) {
  const facts = {
    dialect: 'nanoclaw',
    session: input.sessionId ?? null,
    scheduled: input.isScheduledTask ?? false,
    main: input.isMain,
    assistant: input.assistantName,
    jid: [input.chatJid, env.NANOCLAW_CHAT_JID],
    folder: [input.groupFolder, env.NANOCLAW_GROUP_FOLDER],
    environment: env.NANOCLAW_IS_MAIN,
    cwd: process.cwd(),
  }
  const result = await answer(prompt, facts, {
    sendMessage: text =>
      post('messages', {
        type: 'message',
        chatJid: input.chatJid,
        text,
        groupFolder: input.groupFolder,
      }),
    schedule: (prompt, at) =>
      post('tasks', {
        type: 'schedule_task',
        prompt,
        schedule_type: 'once',
        schedule_value: at.toISOString().slice(0, 19),
        context_mode: 'group',
        targetJid: input.chatJid,
        createdBy: input.groupFolder,
      }),
  })
  say({ status: 'success', result, newSessionId })
}
log('Close sentinel received, exiting')
