import { text as textOf } from 'node:stream/consumers'
import type { ChatAnswer, Client, EntryAnswer } from '@hatchway/host/api'
import { entryText } from '../chat/entry-text.ts'
import { Room } from '../chat/room.ts'
import { type Result, sayAndWait } from '../chat/wait.ts'
import { command } from '../command.ts'
import { exitCodes, Failure, usageError } from '../failure.ts'
import {
  type CommonOptions,
  flag,
  parsed,
  positive,
  text,
  texts,
  type ValuesOf,
  withDefault,
} from '../inputs.ts'
import { note, printJsonLine, printLine } from '../output.ts'
import { withProgress } from '../progress.ts'
import { type Api, withClient } from '../session.ts'

const input = {
  group: text('folder', 'the group (default: the main group)'),
  once: text('text', 'send only this message; without a terminal, standard input is the message'),
  attach: texts('path', 'with --once or without a terminal: a file to send; can be repeated'),
  wait: flag('with --once or without a terminal: wait for the answer and print it'),
  timeout: withDefault(parsed('seconds', 'with --wait: how long to wait', positive), 120),
}
type ChatOptions = ValuesOf<typeof input> & CommonOptions

export default command('chat', 'talk to a group’s agent, until Ctrl-D', {
  example: '--group family\n--once "remind me in ten seconds to stretch" --wait',
  input,
  run: given => withClient(given, (client, api) => chat(given, client, api)),
})

async function chat(options: ChatOptions, client: Client, api: Api): Promise<void> {
  const { once, attach, wait, json } = options
  if (!client.daemon) throw new Failure('No daemon is running. Start one with: npx hatchway up')
  const { warning, assistant } = await client.get('/api/status', api.chatStatusAnswer)
  const room = new Room(client, api, choose(await client.get('/api/chats', api.chatsAnswer), options.group))
  if (warning !== null) note(warning)
  if (once === undefined && attach.length === 0 && process.stdin.isTTY && process.stdout.isTTY)
    return (await import('../chat/talk.ts')).talk(room, assistant)

  const isOnlyFiles = once === undefined && attach.length > 0 && process.stdin.isTTY
  const message = once ?? (isOnlyFiles ? '' : await textOf(process.stdin))
  if (message.trim() === '' && attach.length === 0) throw usageError('The message is empty.')
  const attachments: string[] = []
  for (const path of attach) attachments.push((await room.upload(path)).id)
  const say = () => room.say(message, attachments)
  if (wait) return report(await answer(room, say, options), room.chat, options.timeout)
  const said = await say()
  if (json) await printJsonLine(said)
}

const answer = (room: Room, say: () => ReturnType<Room['say']>, { json, timeout }: ChatOptions) =>
  withProgress('Waiting for the answer', progress =>
    sayAndWait({
      room,
      say,
      timeoutMs: timeout * 1000,
      async print(entry: EntryAnswer) {
        progress('')
        if (json) return printJsonLine(entry)
        await printLine(entryText(entry, ''))
        if (entry.question?.status === 'open')
          note(`the agent waits for your answer: npx hatchway chat --group ${room.chat.folder} --once "…"`)
      },
    }),
  )

function report(result: Result, { trigger }: ChatAnswer, timeout: number): void {
  if (result === 'uncalled') note(`the agent was not called: in this group it answers to ${trigger ?? ''}.`)
  if (result === 'forwarded') note('the agent that asked has got the answer.')
  if (result === 'silent') note('the agent had nothing to say.')
  if (result === 'late')
    throw new Failure(`No answer within ${timeout} s. It may still come.`, exitCodes.noAnswer)
}

function choose(chats: readonly ChatAnswer[], folder: string | undefined): ChatAnswer {
  const chosen =
    folder === undefined
      ? (chats.find(({ main }) => main) ?? (chats.length === 1 ? chats[0] : undefined))
      : chats.find(candidate => candidate.folder === folder)
  if (chosen) return chosen
  if (folder !== undefined) throw new Failure(`No group with folder ${folder}.`)
  throw new Failure(
    chats.length === 0
      ? 'There is no group yet. Add one with: npx hatchway groups add'
      : 'There is no main group. Name a group with --group.',
  )
}
