import type { ChatEventAnswer } from '@hatchway/host/api'
import { Failure } from '../failure.ts'
import { visible } from '../text.ts'
import { parseAttach, saveFile } from './files.ts'
import { createPrompt } from './prompt.ts'
import type { Room } from './room.ts'
import { createTranscript } from './transcript.ts'

const pastEntries = 20

/** A conversation at a terminal: new entries appear above the line that is being typed. */
export async function talk(room: Room, assistant: string): Promise<void> {
  const { client, api, chat } = room
  const prompt = createPrompt()
  const transcript = createTranscript(assistant, prompt.above)
  const say = (text: string) => prompt.above(`hatchway: ${visible(text)}`)
  const end = new AbortController()
  let sending: Promise<void> | undefined

  const send = async (line: string) => {
    try {
      await handleLine(line, room, transcript, say)
    } catch (error) {
      // Without a daemon this process itself would be the host, and nobody would answer.
      if (!client.daemon) return prompt.close()
      if (error instanceof api.ApiError) return say(`${error.message} (${error.code})`)
      if (!(error instanceof Failure)) throw error
      say(error.message)
    }
  }
  const onEvent = async (event: ChatEventAnswer) => {
    if (event.kind === 'hello') for (const entry of await room.entries(pastEntries)) transcript.show(entry)
    if (event.kind === 'entry' && event.entry.jid === chat.jid) {
      // It may be the line that is being sent, whose key we do not know yet.
      if (event.entry.direction === 'in') await sending
      transcript.show(event.entry)
    }
    if (event.kind === 'typing' && event.jid === chat.jid)
      prompt.status(event.on ? `${visible(assistant)} is typing…` : '')
  }

  prompt.above(`${visible(chat.name)} (${visible(chat.jid)}). /attach sends a file, Ctrl-D ends.`)
  if (chat.trigger !== null) prompt.above(`The agent answers to ${visible(chat.trigger)}.`)
  const followed = room
    .follow(onEvent, end.signal)
    .catch((error: unknown) => {
      if (client.daemon) throw error
    })
    .then(() => {
      if (!end.signal.aborted) say('the daemon has ended.')
    })
    .finally(prompt.close)

  prompt.redraw()
  for await (const line of prompt.lines) {
    if (line.trim() !== '') {
      sending = send(line)
      await sending
    }
    prompt.redraw()
  }
  process.stdout.write('\n')
  end.abort()
  await followed
}

/** `/attach` and `/save`, or a message. */
async function handleLine(
  line: string,
  room: Room,
  transcript: ReturnType<typeof createTranscript>,
  say: (text: string) => void,
): Promise<void> {
  const send = async (text: string, attachments: readonly string[] = []) => {
    const { key } = await room.say(text, attachments)
    if (key !== null) transcript.skip(key)
  }
  const [, command, rest = ''] = /^\/(attach|save)(?:\s+(.*))?$/s.exec(line) ?? []
  if (command === undefined) return send(line)
  if (command === 'attach') {
    const { path, text } = parseAttach(rest)
    if (path === '') return say('which file? /attach PATH, and a text to send with it')
    const { id, name } = await room.upload(path)
    await send(text, [id])
    return say(`sent ${name}`)
  }
  const [, number = '', to = '.'] = /^(\d+)(?:\s+(.+))?$/.exec(rest.trim()) ?? []
  const file = transcript.file(Number(number))
  if (!file) return say('which file? /save NUMBER, and a path: /save 1 report.pdf')
  say(`saved ${await saveFile(room.client, file.id, to, file.name)}`)
}
