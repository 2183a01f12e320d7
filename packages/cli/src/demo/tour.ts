import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Client } from '@hatchway/host/api'
import { createNames, post } from '@hatchway/spool'
import { Failure } from '../failure.ts'
import { poll } from '../poll.ts'
import { type Api, url } from '../session.ts'

export const tourGroups = [
  { folder: 'main', jid: 'local:main', name: 'Main', main: true, dialect: 'hatchway' },
  { folder: 'family', jid: 'local:family', name: 'Family', main: false, dialect: 'hatchway' },
  { folder: 'work', jid: 'local:work', name: 'Work', main: false, dialect: 'hatchway' },
] as const

export interface TourOptions {
  client: Client
  api: Api
  ipc: string
  say(line: string): void
  /** answer and decide in place of a person */
  answers: boolean
}

const timeoutMs = 120_000
const pollMs = 100

async function until(what: string, isTrue: () => Promise<boolean>): Promise<void> {
  const find = async () => (await isTrue()) || undefined
  if (!(await poll(find, { everyMs: pollMs, timeoutMs }))) throw new Failure(`The demo failed: ${what}.`)
}

/** What the demo's steps do, as a person in a chat and as a group's agent. */
function createPlayer({ client, api, ipc }: TourOptions) {
  const newName = createNames()
  let requests = 0
  const entries = async (folder: string) =>
    (await client.get(url`/api/chats/${`local:${folder}`}/messages`, api.entriesAnswer)).entries
  return {
    entries,
    write: (folder: string, text: string) =>
      client.post(url`/api/chats/${`local:${folder}`}/messages`, { text }, api.newEntryAnswer),
    /** as the group's own agent would; returns the request id */
    request(folder: string, type: string, payload: object): string {
      const id = `tour-${++requests}`
      const content = JSON.stringify({ version: 1, id, type, payload })
      post(join(ipc, folder, 'tasks'), content, { name: newName() })
      return id
    },
    postRaw: (folder: string, content: string) =>
      post(join(ipc, folder, 'tasks'), content, { name: newName() }),
    async receipt(folder: string, id: string): Promise<string> {
      const path = join(ipc, folder, 'responses', `${id}.json`)
      await until(`no answer for ${folder}`, async () => existsSync(path))
      return readFileSync(path, 'utf8')
    },
    hears: (folder: string, words: RegExp, times = 1) =>
      until(
        `${folder} got no message with ${words}`,
        async () =>
          (await entries(folder)).filter(({ direction, text }) => direction === 'out' && words.test(text))
            .length >= times,
      ),
  }
}

/** One of everything, in three groups, and where to see it. */
export async function playTour(options: TourOptions): Promise<void> {
  const { client, api, say } = options
  const player = createPlayer(options)
  say(
    '1  Main · You write: “remind me in 5 seconds to stretch”. An agent starts in its sandbox, and asks the host.',
  )
  await player.write('main', 'remind me in 5 seconds to stretch')
  say('2  Main · “todo water the plants”: a list that the host keeps. See Chat and Tasks.')
  await player.write('main', 'todo water the plants')

  say('3  Family · An agent asks a question. The card is in Chat, and waits for your answer.')
  const question = player.request('family', 'ask_user', {
    questions: [
      { question: 'Which film tonight?', options: [{ label: 'The old one' }, { label: 'The new one' }] },
    ],
  })

  say('4  Work · An agent with secrets reads the news, which is untrusted, and then wants to publish.')
  const news = player.request('work', 'call_service', { tool: 'read_news', arguments: {} })
  await player.receipt('work', news)
  const note = player.request('work', 'call_service', {
    tool: 'publish_note',
    arguments: { text: 'The accounts are …' },
  })
  await until('the note was not held', async () =>
    (await client.get('/approvals', api.approvalsAnswer)).some(
      ({ group, status }) => group === 'work' && status === 'open',
    ),
  )
  say(
    '   The guard holds it. Secrets + untrusted input + outbound action: needs approval. See Approvals and Audit.',
  )

  say('5  Family · A file with an unknown command arrives.')
  player.postRaw('family', '{"type":"rm_rf","path":"/"}')
  await until('the file was not refused', async () => {
    const errors = await client.get('/errors', api.errorsAnswer)
    return errors.length > 0
  })
  say('   It is refused, and Errors shows why. Traffic shows every step of every file.')

  await player.hears('main', /stretch/)
  if (!options.answers) return
  await answerCards(options, player, question, note)
  say('6  You chose a film, and denied the note. The reminder comes next.')
  await player.hears('main', /stretch/i, 2)
  say('This was the demo.')
}

async function answerCards(
  { client, api }: TourOptions,
  player: ReturnType<typeof createPlayer>,
  question: string,
  note: string,
): Promise<void> {
  const film = (await player.entries('family')).find(entry => entry.question)?.question
  if (film) {
    const path = url`/api/chats/local:family/questions/${film.id}`
    await client.post(path, { question: 1, option: 2 }, api.questionAnswer)
  }
  if (!(await player.receipt('family', question)).includes('The new one'))
    throw new Failure('The demo failed: the question was not answered.')
  const approval = (await player.entries('work')).find(entry => entry.approval)?.approval
  if (approval) {
    const path = url`/api/chats/local:work/approvals/${approval.id}`
    await client.post(path, { decision: 'deny', words: 'not these' }, api.approvalAnswer)
  }
  if (!(await player.receipt('work', note)).includes('"denied"'))
    throw new Failure('The demo failed: the denied note was not refused.')
}
