import { createInterface } from 'node:readline'
import type { ChatAnswer, Client, EntryAnswer, FileAnswer } from '@hatchway/host/api'
import { Failure } from '../failure.ts'
import { visible } from '../text.ts'
import { uuid7 } from '../uuid.ts'
import { entryOf, stateOf } from './entry.ts'
import { parseAttach, save, upload } from './files.ts'
import { followChats } from './follow.ts'

const past = 20

/** A conversation at a terminal: what others say appears above the line that is being written. */
export async function talk(options: {
  client: Client
  api: typeof import('@hatchway/host/api')
  room: ChatAnswer
  assistant: string
}): Promise<void> {
  const { client, api, room, assistant } = options
  const path = `/api/chats/${encodeURIComponent(room.jid)}/messages`
  const shown = new Set<string>()
  /** what was told of each card */
  const told = new Map<string, string[]>()
  /** files as they were shown; the first is number 1 */
  const files: FileAnswer[] = []
  const enough = new AbortController()
  const lines = createInterface({ input: process.stdin, output: process.stdout, prompt: '> ' })
  let open = true
  let saying: Promise<void> | undefined
  lines.once('close', () => {
    open = false
  })
  const prompt = () => {
    if (open) lines.prompt(true)
  }
  const above = (text: string) => {
    process.stdout.write(`\r\u001b[J${text}\n`)
    prompt()
  }
  const show = (entry: EntryAnswer) => {
    // What was written here stands here already.
    if (entry.jid !== room.jid) return
    if (entry.direction === 'out' && entry.status === 'pending') return
    const state = stateOf(entry)
    const before = told.get(entry.key) ?? []
    told.set(entry.key, state)
    if (!shown.has(entry.key)) {
      shown.add(entry.key)
      return above(entryOf(entry, assistant, file => `${files.push(file)}, /save ${files.length}`))
    }
    const news = state.filter(line => !before.includes(line))
    if (news.length > 0) above(news.map(line => `│ ${line}`).join('\n'))
  }
  const say = async (text: string, attachments: readonly string[] = []) => {
    const files = attachments.length > 0 ? { attachments } : {}
    const said = await client.post(path, { text, id: uuid7(), ...files }, api.newEntryAnswer)
    if (said.key !== null) shown.add(said.key)
  }
  const attach = async (rest: string) => {
    const { path: file, text } = parseAttach(rest)
    if (file === '') return above('hatchway: which file? /attach PATH, and what to say with it')
    const { id, name } = await upload(client, api, room, file)
    await say(text, [id])
    above(`hatchway: sent ${visible(name)}`)
  }
  const saveAs = async (rest: string) => {
    const [, number = '', to = '.'] = /^(\d+)(?:\s+(.+))?$/.exec(rest.trim()) ?? []
    const file = files[Number(number) - 1]
    if (!file) return above('hatchway: which file? /save NUMBER, and where to: /save 1 report.pdf')
    above(`hatchway: saved ${visible(await save(client, file.id, to, file.name))}`)
  }
  const obey = async (line: string) => {
    const [, command, rest = ''] = /^\/(attach|save)(?:\s+(.*))?$/s.exec(line) ?? []
    try {
      if (command === 'attach') await attach(rest)
      else if (command === 'save') await saveAs(rest)
      else await say(line)
    } catch (error) {
      // Without a daemon this very process would be the host, and nobody's chat.
      if (!client.daemon) return lines.close()
      if (error instanceof Failure) return above(`hatchway: ${visible(error.message)}`)
      if (!(error instanceof api.ApiError)) throw error
      above(`hatchway: ${visible(error.message)} (${error.code})`)
    }
  }
  const catchUp = async (limit: number) => {
    for (const entry of (await client.get(`${path}?limit=${limit}`, api.entriesAnswer)).entries) show(entry)
  }

  above(`${visible(room.name)} (${visible(room.jid)}). /attach sends a file. Ctrl-D ends.`)
  if (room.trigger !== null) above(`The agent answers to ${visible(room.trigger)}.`)
  const watched = followChats(
    client,
    api,
    async event => {
      if (event.kind === 'hello') await catchUp(past)
      if (event.kind === 'entry') {
        // It may be the very line whose key we are about to be told.
        if (event.entry.direction === 'in') await saying
        show(event.entry)
      }
      if (event.kind === 'typing' && event.jid === room.jid) {
        lines.setPrompt(event.on ? `${visible(assistant)} is writing… > ` : '> ')
        prompt()
      }
    },
    enough.signal,
  )
    .catch((error: unknown) => {
      if (client.daemon) throw error
    })
    .then(() => {
      if (!enough.signal.aborted) above('hatchway: the daemon has ended.')
    })
    .finally(() => lines.close())

  lines.on('SIGINT', () => lines.close())
  prompt()
  for await (const line of lines) {
    if (line.trim() !== '') {
      saying = obey(line)
      await saying
    }
    prompt()
  }
  process.stdout.write('\n')
  enough.abort()
  await watched
}
