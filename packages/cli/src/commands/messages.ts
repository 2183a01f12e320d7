import type { Client, MessageAnswer } from '@hatchway/host/api'
import { type Command, Option } from 'commander'
import { save } from '../chat/files.ts'
import { exitCodes, Failure } from '../failure.ts'
import { briefTime, printList, when } from '../list.ts'
import { type CommonOptions, common, positive } from '../options.ts'
import { printJson, printLine } from '../output.ts'
import { withClient } from '../session.ts'
import type { Column } from '../table.ts'
import { visible } from '../text.ts'

interface ListOptions extends CommonOptions {
  group?: string
  status?: string
  limit?: number
}

const columns: Column<MessageAnswer>[] = [
  { title: 'ID', value: message => String(message.id), right: true },
  { title: 'WRITTEN', value: message => when(message.created_at), brief: briefTime },
  { title: 'GROUP', value: message => message.group, flexible: true },
  { title: 'JID', value: message => message.jid, flexible: true },
  { title: 'STATUS', value: message => message.status },
  { title: 'SENDER', value: message => message.sender ?? '-', flexible: true },
  {
    title: 'TEXT',
    value: message => (message.kind === 'reaction' ? `(reaction) ${message.text}` : message.text),
    flexible: true,
  },
]

const fileId = /^[0-9a-f]{24}$/

const pageSize = 2000

/** There may be a million: page by page, so that neither side ever holds more than one. */
async function* pages(
  client: Client,
  schema: typeof import('@hatchway/host/api')['messagesAnswer'],
  filter: URLSearchParams,
): AsyncIterable<readonly MessageAnswer[]> {
  let after = 0
  for (;;) {
    const query = new URLSearchParams(filter)
    query.set('after', String(after))
    query.set('limit', String(pageSize))
    const page = await client.get(`/messages?${query}`, schema)
    const last = page.at(-1)
    // Long messages make short pages: only an empty one is the end.
    if (last === undefined) return
    yield page
    after = last.id
  }
}

/** One answer holds only so much: where that is less than was asked for, it is said. */
async function* newest(
  client: Client,
  schema: typeof import('@hatchway/host/api')['messagesAnswer'],
  filter: URLSearchParams,
  limit: number,
): AsyncIterable<readonly MessageAnswer[]> {
  const page = await client.get(`/messages?${filter}&last=${limit}`, schema)
  yield page
  const first = page[0]
  if (first === undefined || page.length === limit) return
  const [oldest] = await client.get(`/messages?${filter}&limit=1`, schema)
  if (oldest === undefined || oldest.id >= first.id) return
  process.stderr.write(
    `hatchway: these ${page.length} are so long that older ones are left out; without --limit all are listed.\n`,
  )
}

export function addMessages(program: Command): void {
  const messages = program.command('messages').description('what agents have said')

  common(
    messages.command('list').description('everything agents have sent, oldest first'),
    'messages list --group family --limit 20',
  )
    .option('--group <folder>', 'only this group’s')
    .addOption(new Option('--status <status>', 'only these').choices(['pending', 'sent', 'failed']))
    .option('--limit <number>', 'only the newest so many, at most 10000', positive)
    .action((options: ListOptions) =>
      withClient(options, (client, api) => {
        const query = new URLSearchParams()
        if (options.group !== undefined) query.set('group', options.group)
        if (options.status !== undefined) query.set('status', options.status)
        const batches =
          options.limit === undefined
            ? pages(client, api.messagesAnswer, query)
            : newest(client, api.messagesAnswer, query, options.limit)
        return printList(options, batches, columns, 'No agent has sent a message yet.')
      }),
    )

  common(
    messages.command('save').description('save a file that went along with a message, by its id'),
    'messages save 3f0c5a1be2d4476a9b8c0d1e report.pdf',
  )
    .argument('<id>', 'the file’s id, as the chat shows it')
    .argument('<path>', 'where to; what is there already is not overwritten')
    .action((id: string, path: string, options: CommonOptions) =>
      withClient(options, async client => {
        if (!fileId.test(id)) throw new Failure('That is not the id of a file.', exitCodes.usage)
        const saved = await save(client, id, path, id)
        await (options.json ? printJson({ path: saved }) : printLine(visible(saved)))
      }),
    )
}
