import type { ChatAnswer, Client, EntryAnswer } from '@hatchway/host/api'
import type { Command } from 'commander'
import { answerTo } from '../chat/answer.ts'
import { textOf } from '../chat/entry.ts'
import { upload } from '../chat/files.ts'
import { talk } from '../chat/talk.ts'
import { exitCodes, Failure } from '../failure.ts'
import { type CommonOptions, common, positive } from '../options.ts'
import { printJsonLine, printLine } from '../output.ts'
import { withProgress } from '../progress.ts'
import { withClient } from '../session.ts'
import { visible } from '../text.ts'
import { uuid7 } from '../uuid.ts'

interface ChatOptions extends CommonOptions {
  group?: string
  once?: string
  wait?: boolean
  timeout: number
  attach: string[]
}

export function addChat(program: Command): void {
  common(
    program.command('chat').description('talk to a group’s agent, until Ctrl-D'),
    'chat --group family\nchat --once "remind me in ten seconds to stretch" --wait',
  )
    .option('--group <folder>', 'the group to talk to (default: the main group)')
    .option('--once <text>', 'say only this; without a terminal, standard input is what is said')
    .option(
      '--attach <path>',
      'with --once or without a terminal: a file to send along; may be given again',
      (path: string, before: string[]) => [...before, path],
      [],
    )
    .option('--wait', 'with --once or without a terminal: wait for the answer and print it')
    .option('--timeout <seconds>', 'with --wait: for how long', positive, 120)
    .action((options: ChatOptions) => withClient(options, (client, api) => chat(options, client, api)))
}

async function chat(
  options: ChatOptions,
  client: Client,
  api: typeof import('@hatchway/host/api'),
): Promise<void> {
  if (!client.daemon) {
    throw new Failure('No daemon is running, so nobody would answer. Start one with: npx hatchway up')
  }
  const status = await client.get('/api/status', api.chatStatusAnswer)
  const room = choose(await client.get('/api/chats', api.chatsAnswer), options.group)
  if (status.warning !== null) note(status.warning)
  if (
    options.once === undefined &&
    options.attach.length === 0 &&
    process.stdin.isTTY &&
    process.stdout.isTTY
  ) {
    return talk({ client, api, room, assistant: status.assistant })
  }

  const isOnlyFiles = options.once === undefined && options.attach.length > 0 && process.stdin.isTTY
  const text = options.once ?? (isOnlyFiles ? '' : await everything(process.stdin))
  if (text.trim() === '' && options.attach.length === 0)
    throw new Failure('There is nothing to say.', exitCodes.usage)
  const attachments: string[] = []
  for (const path of options.attach) attachments.push((await upload(client, api, room, path)).id)
  const files = attachments.length > 0 ? { attachments } : {}
  const say = () => client.post(pathOf(room), { text, id: uuid7(), ...files }, api.newEntryAnswer)
  if (!options.wait) {
    const said = await say()
    if (options.json) await printJsonLine(said)
    return
  }
  const print = async (entry: EntryAnswer) => {
    if (options.json) return printJsonLine(entry)
    await printLine(textOf(entry, ''))
    if (entry.question?.status === 'open') {
      note(`the agent waits for that: npx hatchway chat --group ${room.folder} --once "…"`)
    }
  }
  const timeoutMs = options.timeout * 1000
  const answer = await withProgress('Waiting for the answer', progress =>
    answerTo({
      client,
      api,
      room,
      say,
      print: entry => {
        progress('')
        return print(entry)
      },
      timeoutMs,
    }),
  )
  if (answer === 'context') {
    note(`nobody was called: in this group the agent answers to ${visible(room.trigger ?? '')}.`)
  }
  if (answer === 'passed on') note('the agent that asked has its answer.')
  if (answer === 'silent') note('the agent had nothing to say.')
  if (answer === 'late') {
    throw new Failure(`No answer came within ${options.timeout} s. It may still come.`, exitCodes.noAnswer)
  }
}

const note = (text: string) => void process.stderr.write(`hatchway: ${visible(text)}\n`)

const pathOf = ({ jid }: ChatAnswer) => `/api/chats/${encodeURIComponent(jid)}/messages`

function choose(rooms: readonly ChatAnswer[], folder: string | undefined): ChatAnswer {
  const room =
    folder === undefined
      ? (rooms.find(({ main }) => main) ?? (rooms.length === 1 ? rooms[0] : undefined))
      : rooms.find(candidate => candidate.folder === folder)
  if (room) return room
  if (folder !== undefined) throw new Failure(`No group has the folder ${folder}.`)
  throw new Failure(
    rooms.length === 0
      ? 'There is no group yet. Add one with: npx hatchway groups add'
      : 'There is no main group. Say which one you mean with --group.',
  )
}

async function everything(input: NodeJS.ReadStream): Promise<string> {
  input.setEncoding('utf8')
  let text = ''
  for await (const part of input) text += part
  return text
}
