import { lstatSync, mkdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { createStream, document, drain, heeded, isThere, log, write } from './boxes.ts'
import { check, isRow, isTime, must, mustHave, rowsOf } from './evidence.ts'
import type { Kit } from './kit.ts'
import { checkStart } from './orders.ts'
import { Broken, createRun, newSessionId, saidInZone } from './run.ts'

/**
 * NanoClaw's container: a document on standard input, follow-ups into the running query, results between markers. What
 * its forks changed is in their own files.
 */
export const ipc = '/workspace/ipc'
const input = `${ipc}/input`
const closed = `${input}/_close`
const pollMs = 500

export const freshName = () => `${Date.now()}-${Math.random().toString(36).slice(2, 8)}.json`

export const post = (directory: string, content: object, name = freshName()): string => {
  write(`${ipc}/${directory}`, name, `${name}.tmp`, content)
  return name
}

/** `available_groups.json` in the shape that NovaBot and Pynchy kept. */
export const checkFlatGroups = (main: boolean) => (content: unknown) => {
  must(isRow(content), 'available_groups.json is not an object')
  mustHave(content, ['groups', 'lastSync'])
  must(isTime(content.lastSync), `lastSync is ${content.lastSync}`)
  const groups = rowsOf(content.groups)
  must(main || groups.length === 0, `it is shown ${groups.length} groups`)
  for (const group of groups) {
    mustHave(group, ['jid', 'name', 'lastActivity', 'isRegistered'])
    must(typeof group.jid === 'string' && typeof group.name === 'string', JSON.stringify(group))
    must(isTime(group.lastActivity) && typeof group.isRegistered === 'boolean', JSON.stringify(group))
  }
  return groups
}

export const flatTaskKeys = [
  ...['id', 'groupFolder', 'prompt', 'schedule_type', 'schedule_value', 'status', 'next_run'],
]

export async function runNanoClaw(kitFor: (who: Kit['who']) => Kit): Promise<void> {
  const given = await document()
  const { env } = process
  log(`Received input for group: ${given.groupFolder}`)
  const folder = String(given.groupFolder)
  const jid = String(given.chatJid)
  const kit = kitFor({ folder, jid, main: given.isMain === true })
  await checkStart(kit, {
    document() {
      const maybe = ['sessionId', 'isScheduledTask', 'assistantName', 'script']
      mustHave(given, ['prompt', 'groupFolder', 'chatJid', 'isMain'], maybe)
      must(typeof given.prompt === 'string' && typeof given.isMain === 'boolean', JSON.stringify(given))
      must(given.assistantName === 'Hatch', `assistantName is ${given.assistantName}`)
    },
    environment() {
      must(env.NANOCLAW_CHAT_JID === jid, `NANOCLAW_CHAT_JID is ${env.NANOCLAW_CHAT_JID}`)
      must(env.NANOCLAW_GROUP_FOLDER === folder, `NANOCLAW_GROUP_FOLDER is ${env.NANOCLAW_GROUP_FOLDER}`)
      must(env.NANOCLAW_IS_MAIN === (kit.who.main ? '1' : '0'), `NANOCLAW_IS_MAIN is ${env.NANOCLAW_IS_MAIN}`)
    },
  })
  mkdirSync(input, { recursive: true })
  const run = createRun({
    kit,
    scheduled: given.isScheduledTask === true,
    sessionId: given.sessionId === undefined ? undefined : String(given.sessionId),
    script: given.script === undefined ? undefined : String(given.script),
    closed,
    inbox: input,
    said: saidInZone,
  })
  heeded(closed)

  const say = (output: object) => {
    console.log('---NANOCLAW_OUTPUT_START---')
    console.log(JSON.stringify(output))
    console.log('---NANOCLAW_OUTPUT_END---')
  }
  const texts = () =>
    drain(input).flatMap(message => {
      void check('followup', () => {
        mustHave(message, ['type', 'text'])
        must(message.type === 'message' && typeof message.text === 'string', JSON.stringify(message))
      })
      return message.type === 'message' ? [String(message.text)] : []
    })
  const stream = createStream([given.prompt, ...texts()].join('\n'))
  const close = async () => {
    if (!isThere(closed)) return false
    await check('close', () => must(lstatSync(closed).size === 0, `${closed} is not empty`))
    return heeded(closed)
  }
  const poll = async () => {
    for (;;) {
      await sleep(pollMs)
      const order = await run.first()
      if (order === 'messages') for (const text of texts()) stream.push(text)
      if (await close()) return stream.end()
      for (const text of texts()) stream.push(text)
    }
  }
  void poll()

  try {
    for await (const prompt of stream) {
      const result = await run.answer(prompt)
      say({ status: 'success', result, newSessionId })
      // A query ends with one more that says nothing.
      if (result !== null) say({ status: 'success', result: null, newSessionId })
      if (run.isLeaving()) process.exit(0)
    }
  } catch (error) {
    if (!(error instanceof Broken)) throw error
    say({ status: 'error', result: null, newSessionId, error: error.message })
    process.exit(1)
  }
  log('Close sentinel received, exiting')
  process.exit(0)
}
