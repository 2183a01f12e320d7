import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { document, eventually, heeded, isThere, log, namesIn, present, take, write } from './boxes.ts'
import { check, isTime, must, mustHave, type Row, TurnEnds } from './evidence.ts'
import type { Kit } from './kit.ts'
import { freshName } from './nanoclaw.ts'
import { ipc, novaBotKit } from './novabot.ts'
import { checkStart } from './orders.ts'
import { Broken, createRun, newSessionId, saidAt } from './run.ts'

/**
 * NovaBot's container: with a prompt in its document it answers that and ends; without one it stays, takes messages out
 * of inbox/ and puts answers into outbox/.
 */
const given = await document()
const { env } = process
const folder = String(given.groupFolder)
const jid = String(given.chatJid)
const who = { folder, jid, main: given.isMain === true }
const shutdown = `${ipc}/control/shutdown.json`
const interrupt = `${ipc}/control/interrupt.json`

const post = (directory: string, content: object, name = freshName()): string => {
  write(`${ipc}/${directory}`, name, `${name}.tmp`, { ...content, timestamp: new Date().toISOString() })
  return name
}
const message = (text: string, to = jid, more: object = {}) => ({
  ...{ type: 'message', chatJid: to, text, groupFolder: folder, ...more },
})
const task = (type: string, taskId: string) =>
  void post('tasks', { type, taskId, groupFolder: folder, isMain: who.main })

const checkControl = (path: string, type: string): Row => {
  const content = take(path)
  mustHave(content, ['type', 'timestamp'])
  must(content.type === type && isTime(content.timestamp), JSON.stringify(content))
  return content
}

const kit: Kit = {
  ...novaBotKit(who),
  boxes: ['messages', 'tasks', 'input', 'inbox', 'outbox', 'control', 'audio'],
  post,
  temporaryName: () => `${freshName()}.tmp`,
  harmless: text => ({ directory: 'messages', body: message(text) }),
  message: (text, { jid: to, sender, claims } = {}) =>
    void post(
      'messages',
      message(text, to, {
        ...present({ sender }),
        ...(claims ? { groupFolder: 'main', isMain: true } : {}),
      }),
    ),
  schedule: ({ prompt, type, value, mode = 'isolated', target }) =>
    void post('tasks', {
      type: 'schedule_task',
      prompt,
      schedule_type: type,
      schedule_value: value,
      context_mode: mode,
      groupFolder: target?.folder ?? folder,
      chatJid: jid,
      createdBy: folder,
    }),
  pause: id => task('pause_task', id),
  resume: id => task('resume_task', id),
  cancel: id => task('cancel_task', id),
  register: ({ jid, name, folder, trigger }) =>
    void post('tasks', { type: 'register_group', jid, name, folder, trigger }),
  refreshBody: { type: 'refresh_groups' },
  own: {
    async replies() {
      const reply = { type: 'reply', chatJid: jid, groupFolder: folder }
      post('messages', { ...reply, text: `${folder}: replied`, audio_text: null, audio_title: null })
      post('messages', {
        ...reply,
        text: `${folder}: aloud`,
        audio_text: 'Good morning.',
        audio_title: 'Greeting',
      })
      post('audio', { type: 'speak', text: `${folder}: spoken`, title: null })
    },
    async endless() {
      await check('interrupt', async () => {
        await eventually('control/interrupt.json', () => isThere(interrupt))
        checkControl(interrupt, 'interrupt')
      })
      throw new TurnEnds('interrupted')
    },
    async unasked() {
      await check('unasked', () => must(!isThere(`${ipc}/responses`), 'there is a directory of answers'))
    },
  },
}

await checkStart(kit, {
  document() {
    const maybe = ['prompt', 'sessionId', 'isScheduledTask', 'assistantName', 'agentName', 'script']
    mustHave(given, ['groupFolder', 'chatJid', 'isMain'], maybe)
    must(typeof given.isMain === 'boolean', JSON.stringify(given))
  },
  environment() {
    must(env.NANOCLAW_CHAT_JID === jid && env.CHAT_JID === jid, `CHAT_JID is ${env.CHAT_JID}`)
    must(env.GROUP_FOLDER === folder, `GROUP_FOLDER is ${env.GROUP_FOLDER}`)
    must(env.IS_MAIN === String(who.main), `IS_MAIN is ${env.IS_MAIN}`)
  },
})
const run = createRun({
  kit,
  scheduled: given.isScheduledTask === true,
  sessionId: given.sessionId === undefined ? undefined : String(given.sessionId),
  closed: shutdown,
  inbox: `${ipc}/inbox`,
  said: saidAt,
})

const putOut = (content: { id: string; status: string; [more: string]: unknown }): string => {
  const name = `${content.id}-${Date.now()}.json`
  write(`${ipc}/outbox`, name, `${name}.tmp`, { ...content, timestamp: new Date().toISOString() })
  return join(ipc, 'outbox', name)
}

const nextMessage = (): { id: string; prompt: string } | undefined => {
  const [name] = namesIn(`${ipc}/inbox`)
  if (name === undefined) return undefined
  const content = take(`${ipc}/inbox/${name}`)
  void check('inbox', () => {
    mustHave(content, ['id', 'prompt', 'timestamp'], ['audioMode'])
    must(`${content.id}.json` === name && isTime(content.timestamp), JSON.stringify(content))
  })
  return { id: String(content.id), prompt: String(content.prompt) }
}

const answerTo = async ({ id, prompt }: { id: string; prompt: string }) => {
  process.stdout.write('---NANOCLAW_STATUS---{"status":"Thinking..."}\n')
  try {
    const result = await run.answer(prompt)
    const file = putOut({ id, status: 'success', result, newSessionId })
    await check('outbox', () =>
      eventually('the answer is taken', () => !existsSync(file)).then(() => undefined),
    )
    if (run.isLeaving()) process.exit(0)
  } catch (error) {
    if (error instanceof TurnEnds) return void putOut({ id, status: 'interrupted', newSessionId })
    if (!(error instanceof Broken)) throw error
    putOut({ id, status: 'error', error: error.message })
  }
}

const isShutDown = async () => {
  if (!isThere(shutdown)) return false
  await check('close', () => void checkControl(shutdown, 'shutdown'))
  heeded(shutdown)
  return true
}

if (given.prompt) {
  log('One-shot mode')
  const result = await run.answer(String(given.prompt))
  console.log('---NANOCLAW_OUTPUT_START---')
  console.log(JSON.stringify({ status: 'success', result, newSessionId }))
  console.log('---NANOCLAW_OUTPUT_END---')
} else {
  log('Supervisor mode')
  const ready = putOut({ id: 'ready', status: 'success' })
  await check('ready', () => eventually('it is taken', () => !existsSync(ready)).then(() => undefined))
  for (;;) {
    const order = await run.first()
    const early = order === 'messages' ? nextMessage() : undefined
    if (early) await answerTo(early)
    if (await isShutDown()) break
    const next = nextMessage()
    if (next) await answerTo(next)
    else await sleep(300)
  }
  log('Supervisor exiting')
  process.exit(0)
}
