import { randomBytes } from 'node:crypto'
import { appendFileSync, mkdirSync } from 'node:fs'
import { answer, createStream, document, drain, heeded, write } from './agent.ts'

/** Behaves as mdclaw's container does: everything at /ipc and /data, plain text between the markers, no session ids. */
const ipc = '/ipc'
const input = await document()
if (typeof input.secrets !== 'object' || input.secrets === null) throw new Error('secrets are required')
const scheduled = input.isScheduledTask === true

const say = (text: string) =>
  process.stdout.write(`\n---NANOCLAW_OUTPUT_START---\n${text}\n---NANOCLAW_OUTPUT_END---\n`)

mkdirSync(`${ipc}/input`, { recursive: true })
const stream = createStream(`${input.prompt}`)
const poll = () => {
  if (heeded(`${ipc}/input/_close`)) return stream.end()
  for (const { sender_name, content } of drain(`${ipc}/input`)) stream.push(`[${sender_name}]: ${content}`)
  setTimeout(poll, 500)
}
// A scheduled one looks at nothing but its task.
if (!scheduled) setTimeout(poll, 500)

mkdirSync('/data/sessions', { recursive: true })
for await (const prompt of stream) {
  const facts = {
    dialect: 'mdclaw',
    session: input.sessionId,
    scheduled,
    main: input.isMain,
    assistant: input.assistantName,
    jid: [input.chatJid, process.env.NANOCLAW_CHAT_JID],
    folder: [input.groupFolder, process.env.NANOCLAW_GROUP_FOLDER],
    environment: process.env.NANOCLAW_IS_MAIN,
    secrets: input.secrets,
  }
  const result = await answer(prompt, facts, {
    sendMessage: say,
    schedule(prompt, at) {
      const name = `${Date.now()}-${randomBytes(4).toString('hex')}.json`
      write(`${ipc}/tasks`, name, `.${name}.tmp`, {
        type: 'schedule_task',
        payload: {
          prompt,
          schedule_type: 'once',
          schedule_value: at.toISOString(),
          context_mode: 'group',
          chat_jid: input.chatJid,
        },
        source_group: input.groupFolder,
      })
    },
  })
  say(result)
  appendFileSync('/data/sessions/log.md', `## User\n${prompt}\n\n`)
  if (scheduled) stream.end()
}
