import type { Client, MessageAnswer } from '@hatchway/host/api'
import { saveFile } from '../chat/files.ts'
import { call, family, list } from '../command.ts'
import { usageError } from '../failure.ts'
import { timeColumn } from '../format.ts'
import { choice, group, parsed, positive, required } from '../inputs.ts'
import { note } from '../output.ts'
import { type Api, url } from '../session.ts'
import type { Column } from '../table.ts'
import { visible } from '../text.ts'

const columns: Column<MessageAnswer>[] = [
  { title: 'ID', value: message => String(message.id), right: true },
  timeColumn('SENT', message => message.created_at),
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

interface Filter {
  group: string | undefined
  status: string | undefined
}

const pageSize = 2000

/** There may be a million: in pages, so that neither side holds more than one. */
async function* all(client: Client, api: Api, filter: Filter): AsyncIterable<readonly MessageAnswer[]> {
  let after: number | undefined = 0
  while (after !== undefined) {
    const page: readonly MessageAnswer[] = await client.get(
      url`/messages?${{ ...filter, after, limit: pageSize }}`,
      api.messagesAnswer,
    )
    yield page
    // Long messages make short pages: only an empty one is the end.
    after = page.at(-1)?.id
  }
}

/** An answer has a maximum size, so it may have fewer messages than requested; then say so. */
async function* newest(
  client: Client,
  api: Api,
  filter: Filter,
  last: number,
): AsyncIterable<readonly MessageAnswer[]> {
  const page = await client.get(url`/messages?${{ ...filter, last }}`, api.messagesAnswer)
  yield page
  const first = page[0]
  if (first === undefined || page.length === last) return
  const [oldest] = await client.get(url`/messages?${{ ...filter, limit: 1 }}`, api.messagesAnswer)
  if (oldest === undefined || oldest.id >= first.id) return
  note(
    `the answer is full after ${page.length} long messages, older ones are left out. Without --limit, all are listed.`,
  )
}

const fileId = /^[0-9a-f]{24}$/

export default family('messages', 'inspect messages from agents', [
  list('list', 'list messages of agents, oldest first', {
    example: '--group family --limit 20',
    input: {
      group,
      status: choice('status', 'only this status', ['pending', 'sent', 'failed']),
      limit: parsed('number', 'only the newest, at most 10000 (default: all)', positive),
    },
    rows: (client, api, { group, status, limit }) =>
      limit === undefined
        ? all(client, api, { group, status })
        : newest(client, api, { group, status }, limit),
    columns,
    empty: 'No messages yet.',
  }),
  call('save', 'save an attachment of a message', {
    example: '3f0c5a1be2d4476a9b8c0d1e report.pdf',
    input: {
      id: required('the file’s id, from the chat'),
      path: required('where to save it; an existing file is not overwritten'),
    },
    async call(client, _, { id, path }) {
      if (!fileId.test(id)) throw usageError(`${id} is not the id of a file.`)
      return { path: await saveFile(client, id, path, id) }
    },
    print: ({ path }) => visible(path),
  }),
])
