import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '@hatchway/host/api'
import { createNames, post } from '@hatchway/spool'
import { Failure } from '../failure.ts'

type Api = typeof import('@hatchway/host/api')

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
  /** answers and decides in a person's stead */
  answers: boolean
}

const patienceMs = 120_000
const lookMs = 100

/** One of everything, in three groups, with a word on where to see it. */
export async function playTour({ client, api, ipc, say, answers }: TourOptions): Promise<void> {
  const freshName = createNames()
  let number = 0
  const write = (folder: string, text: string) =>
    client.post(`/api/chats/${encodeURIComponent(`local:${folder}`)}/messages`, { text }, api.newEntryAnswer)
  /** as the group's own agent would */
  const drop = (folder: string, type: string, payload: object): string => {
    const id = `tour-${++number}`
    post(join(ipc, folder, 'tasks'), JSON.stringify({ version: 1, id, type, payload }), { name: freshName() })
    return id
  }
  const answerTo = async (folder: string, id: string): Promise<string> => {
    const path = join(ipc, folder, 'responses', `${id}.json`)
    await until(`${folder} is answered`, async () => existsSync(path))
    return readFileSync(path, 'utf8')
  }
  const entries = async (folder: string) =>
    (await client.get(`/api/chats/${encodeURIComponent(`local:${folder}`)}/messages`, api.entriesAnswer))
      .entries
  const heard = (folder: string, words: string) =>
    until(`${folder} hears of “${words}”`, async () =>
      (await entries(folder)).some(({ direction, text }) => direction === 'out' && text.includes(words)),
    )

  say(
    '1  Main · You write: “remind me in 5 seconds to stretch”. An agent wakes in its sandbox, and asks the host.',
  )
  await write('main', 'remind me in 5 seconds to stretch')
  say('2  Main · “todo water the plants”: a list that the host keeps. See Chat, and Tasks.')
  await write('main', 'todo water the plants')

  say('3  Family · An agent asks its people something. The card is in Chat, and waits for you.')
  const question = drop('family', 'ask_user', {
    questions: [
      { question: 'Which film tonight?', options: [{ label: 'The old one' }, { label: 'The new one' }] },
    ],
  })

  say(
    '4  Work · An agent that knows the accounts reads the news, which a stranger wrote, and then wants to publish.',
  )
  await answerTo('work', drop('work', 'call_service', { tool: 'read_news', arguments: {} }))
  const held = drop('work', 'call_service', {
    tool: 'publish_note',
    arguments: { text: 'The accounts are …' },
  })
  await until('it is held', async () =>
    (await client.get('/approvals', api.approvalsAnswer)).some(
      ({ group, status }) => group === 'work' && status === 'open',
    ),
  )
  say(
    '   The guard holds it: secrets, a stranger’s words and a way out are one too many. See Approvals, and Audit.',
  )

  say('5  Family · Somebody drops a file that asks for what there is not.')
  post(join(ipc, 'family', 'tasks'), '{"type":"rm_rf","path":"/"}', { name: freshName() })
  await until('it is refused', async () => (await client.get('/errors', api.errorsAnswer)).length > 0)
  say('   It is refused, and lies in Errors with the reason. Every step of every file is in Traffic.')

  await heard('main', 'stretch')
  if (!answers) return
  const film = (await entries('family')).find(entry => entry.question)?.question
  if (film)
    await client.post(
      `/api/chats/${encodeURIComponent('local:family')}/questions/${film.id}`,
      { question: 1, option: 2 },
      api.questionAnswer,
    )
  if (!(await answerTo('family', question)).includes('The new one'))
    throw new Failure('The question was not answered.')
  const waiting = (await entries('work')).find(entry => entry.approval)?.approval
  if (waiting)
    await client.post(
      `/api/chats/${encodeURIComponent('local:work')}/approvals/${waiting.id}`,
      { decision: 'deny', words: 'not these' },
      api.approvalAnswer,
    )
  if (!(await answerTo('work', held)).includes('"denied"'))
    throw new Failure('What was denied was not refused.')
  say('6  You chose a film, and said no to the note. The reminder comes next.')
  await until(
    'the reminder is there',
    async () =>
      (await entries('main')).filter(({ direction, text }) => direction === 'out' && /stretch/i.test(text))
        .length >= 2,
  )
  say('That is the tour.')
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + patienceMs
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Failure(`The tour waited in vain until ${what}.`)
    await sleep(lookMs)
  }
}
