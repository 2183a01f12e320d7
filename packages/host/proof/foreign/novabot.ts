import { existsSync, readdirSync, readFileSync, unlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { answer, document, heeded, log, write } from './agent.ts'

/**
 * Behaves as NovaBot's container does: with a prompt in its document it answers that and ends; without one it stays,
 * takes messages out of inbox/ and puts answers into outbox/.
 */
const ipc = '/workspace/ipc'
const input = await document()

const post = (directory: string, content: object) => {
  const name = `${Date.now()}-${Math.random().toString(36).slice(2, 8)}.json`
  write(`${ipc}/${directory}`, name, `${name}.tmp`, { ...content, timestamp: new Date().toISOString() })
}
const ask = (prompt: string, session: unknown) =>
  answer(
    prompt,
    {
      dialect: 'novabot',
      session: session ?? null,
      scheduled: input.isScheduledTask ?? false,
      main: input.isMain,
      assistant: input.agentName,
      jid: [input.chatJid, process.env.CHAT_JID],
      folder: [input.groupFolder, process.env.GROUP_FOLDER],
      environment: process.env.IS_MAIN,
      cwd: process.cwd(),
    },
    {
      sendMessage: text =>
        post('messages', {
          type: 'reply',
          text,
          audio_text: null,
          audio_title: null,
          chatJid: input.chatJid,
          groupFolder: input.groupFolder,
        }),
      schedule: (prompt, at) =>
        post('tasks', {
          type: 'schedule_task',
          prompt,
          schedule_type: 'once',
          schedule_value: at.toISOString().slice(0, 19),
          context_mode: 'group',
          groupFolder: input.groupFolder,
          chatJid: input.chatJid,
          createdBy: input.groupFolder,
        }),
    },
  )

const putOut = (content: { id: string; status: string; result?: string; newSessionId?: string }) => {
  const name = `${content.id}-${Date.now()}.json`
  write(`${ipc}/outbox`, name, `${name}.tmp`, { ...content, timestamp: new Date().toISOString() })
}

const nextMessage = (): { id: string; prompt: string } | undefined => {
  const [name] = readdirSync(`${ipc}/inbox`)
    .filter(name => name.endsWith('.json'))
    .sort()
  if (name === undefined) return undefined
  const message = JSON.parse(readFileSync(`${ipc}/inbox/${name}`, 'utf8'))
  unlinkSync(`${ipc}/inbox/${name}`)
  return message
}

if (input.prompt) {
  log('One-shot mode')
  const result = await ask(`${input.prompt}`, input.sessionId)
  console.log('---NANOCLAW_OUTPUT_START---')
  console.log(JSON.stringify({ status: 'success', result, newSessionId: `${input.sessionId}-1` }))
  console.log('---NANOCLAW_OUTPUT_END---')
} else {
  log('Supervisor mode')
  for (const name of ['inbox', 'outbox', 'control'])
    if (!existsSync(`${ipc}/${name}`)) throw new Error(`${name} is missing`)
  putOut({ id: 'ready', status: 'success' })
  let session: string | undefined
  while (!heeded(`${ipc}/control/shutdown.json`)) {
    const message = nextMessage()
    if (!message) {
      await sleep(300)
      continue
    }
    console.error('---NANOCLAW_STATUS---{"status":"Thinking..."}')
    const result = await ask(message.prompt, session)
    session = 'novabot-1'
    putOut({ id: message.id, status: 'success', result, newSessionId: session })
  }
  log('Supervisor exiting')
  process.exit(0)
}
