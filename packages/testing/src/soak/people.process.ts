import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type ChatEventAnswer,
  chatEventAnswer,
  type EntryAnswer,
  fileAnswer,
} from '../../../host/src/api/chat-answers.ts'
import { announcedSocket } from '../../../host/src/api/socket.ts'
import { overSocket } from '../../../host/src/client/over-socket.ts'
import { createRandom } from '../random.ts'
import { createConsole } from './console.ts'
import { largestFile } from './plan.ts'
import { createComplaints, type Finish, type FromPeople, type Heard, reminderSign } from './traffic.ts'

/**
 * The people: they write to agents and wait for the reply, allow and deny what agents ask for, answer questions, send
 * files, and hear everything that is said in all chats. One of them has the console open in a browser.
 *
 *   node people.process.ts JSON
 *
 * `begin` on its channel: they talk. `end`: nothing more is said. `finish`: they wait until all of it was heard, and tell.
 */
export interface PeopleOrder {
  data: string
  /** the link that the daemon printed */
  link: string
  jids: string[]
  rate: number
  seed: number
}

const order: PeopleOrder = JSON.parse(process.argv[2] ?? '')
const random = createRandom(order.seed)
const complaints = createComplaints()
const api = overSocket(announcedSocket(order.data))
const heard: Heard = {
  kind: 'heard',
  odd: [],
  delivered: 0,
  reminders: { asked: 0, came: 0 },
  chats: { asked: 0, answered: 0 },
  approvals: 0,
  questions: 0,
  reconnects: 0,
  missed: 0,
  complaints: complaints.all,
}
let latencies: number[] = []
/** the entry that said it, by text */
const deliveries = new Map<string, Map<number, string>>()
const marked = /^(?:⏰ Reminder: )?soak (\d+[.!])(\d+)$/
/** who waits for a reply, by chat */
const waiting = new Map<string, { at: number; done(): void }>()
/** cards that somebody has seen to */
const seen = new Set<string>()

function hear(entry: EntryAnswer): void {
  if (entry.direction !== 'out') return
  if (entry.kind === 'approval' || entry.kind === 'question') return void seeTo(entry)
  if (entry.kind !== 'text') return
  if (entry.status === 'failed') complaints.add(`a message could not be delivered: ${entry.error}`)
  if (entry.status !== 'sent') return
  const [, kind = '', number = ''] = marked.exec(entry.text) ?? []
  if (kind !== '') note(kind, Number(number), entry)
  else if (entry.text.startsWith(reminderSign)) heard.reminders.came++
  else replied(entry)
}

function replied(entry: EntryAnswer): void {
  const asked = waiting.get(entry.jid)
  if (!asked) {
    complaints.add(`nobody had asked for: ${entry.text.slice(0, 60)}`)
    return
  }
  waiting.delete(entry.jid)
  heard.chats.answered++
  latencies.push(performance.now() - asked.at)
  asked.done()
}

function note(kind: string, number: number, { key }: EntryAnswer): void {
  const known = deliveries.get(kind) ?? new Map<number, string>()
  deliveries.set(kind, known)
  const before = known.get(number)
  if (before === key) return
  if (before !== undefined)
    heard.odd.push(`soak ${kind}${number} was delivered again as ${key} after ${before}`)
  known.set(number, key)
  heard.delivered++
}

/** Some decide, some do not get round to it. */
async function seeTo({ jid, question, approval }: EntryAnswer): Promise<void> {
  const id = approval?.id ?? question?.id
  const isOpen = (approval ?? question)?.status === 'open'
  if (id === undefined || !isOpen || seen.has(id)) return
  seen.add(id)
  setTimeout(() => seen.delete(id), 60_000).unref()
  if (random.chance(0.1)) return
  await sleep(100 + random.below(2000))
  const path = `/api/chats/${encodeURIComponent(jid)}`
  if (approval) {
    const body = { decision: random.chance(0.6) ? 'allow' : 'deny' }
    heard.approvals++
    await post(`${path}/approvals/${id}`, body, [409])
  } else {
    heard.questions++
    await post(`${path}/questions/${id}`, { option: 1 + random.below(2) }, [409, 404])
  }
}

async function post(
  path: string,
  body: object,
  alsoFine: readonly number[] = [],
): Promise<string | undefined> {
  const { status, text } = await api.request('POST', path, body)
  if (status < 300) return text
  if (!alsoFine.includes(status)) complaints.add(`POST ${path}: ${status} ${text.slice(0, 200)}`)
  return undefined
}

const idField = 'id: '
const dataField = 'data: '
let position: string | undefined
async function listen(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const path =
        position === undefined ? '/api/events' : `/api/events?after=${encodeURIComponent(position)}`
      let id: string | undefined
      await api.lines(
        path,
        line => {
          if (line.startsWith(idField)) id = line.slice(idField.length)
          if (!line.startsWith(dataField)) return
          hearEvent(chatEventAnswer.parse(JSON.parse(line.slice(dataField.length))))
          position = id ?? position
        },
        signal,
      )
    } catch (error) {
      complaints.add(`the chats could not be listened to: ${error}`)
    }
    await sleep(200)
  }
}
function hearEvent(event: ChatEventAnswer): void {
  if (event.kind === 'hello' && !event.complete) complaints.add('something said in the chats was missed')
  if (event.kind === 'hello' && position === undefined) tell({ kind: 'ready' })
  if (event.kind === 'entry') hear(event.entry)
}

let said = 0
const says: readonly (() => string)[] = [
  () => 'help',
  () => 'what time is it',
  () => 'hello',
  () => 'list my reminders',
  () => `remember that the code of door ${random.below(5)} is ${random.below(10_000)}`,
  () => `what do you remember about door ${random.below(5)}`,
  () => {
    heard.reminders.asked++
    return `remind me in fifteen seconds to stretch ${said}`
  },
]

/** One to three messages, each after the reply to the one before: later ones find the session running. */
async function converse(jid: string, text = random.pick(says)): Promise<void> {
  const path = `/api/chats/${encodeURIComponent(jid)}`
  for (let left = 1 + random.below(3); left > 0; left--) {
    const attachments = sends.has(jid) && random.chance(0.5) ? await upload(path) : undefined
    const done = new Promise<void>(resolve => waiting.set(jid, { at: performance.now(), done: resolve }))
    heard.chats.asked++
    await post(`${path}/messages`, { text: text(), id: `p-${said++}`, ...(attachments && { attachments }) })
    await done
    await sleep(random.below(1500))
    if (isEnding) return
  }
}

/** few, so that the space for their files is full soon */
const sends = new Set(order.jids.slice(0, 4))

async function upload(path: string): Promise<string[]> {
  const content = Readable.from([Buffer.alloc(1 + random.below(largestFile), 'y')])
  const { status, text } = await api.upload(`${path}/files?name=photo-${said}.txt`, content)
  if (status === 201) return [fileAnswer.parse(JSON.parse(text)).id]
  complaints.add(`a file could not be sent: ${status} ${text.slice(0, 200)}`)
  return []
}

let isEnding = false
const busy = new Set<string>()
const begin = () => {
  const free = order.jids.filter(jid => !busy.has(jid))
  if (free.length === 0) return
  const jid = random.pick(free)
  busy.add(jid)
  converse(jid)
    .catch(error => complaints.add(`somebody could not talk: ${error}`))
    .finally(() => busy.delete(jid))
}

const tell = (message: FromPeople, told = () => {}) => process.send?.(message, told)
const tick = () => {
  tell({ kind: 'chats', latencies, delivered: heard.delivered })
  latencies = []
}

const patienceMs = 120_000
async function finish({ sent }: Finish): Promise<void> {
  const wanted = sent.flatMap(({ process: number, messages, reminders }) => [
    [`${number}.`, messages] as const,
    [`${number}!`, reminders] as const,
  ])
  const missing = () =>
    wanted.reduce((sum, [kind, count]) => sum + Math.max(0, count - (deliveries.get(kind)?.size ?? 0)), 0)
  const deadline = performance.now() + patienceMs
  const isDone = () => missing() === 0 && waiting.size === 0 && heard.reminders.came >= heard.reminders.asked
  while (!isDone() && performance.now() < deadline) await sleep(100)
  // What is delivered twice may come a moment later.
  await sleep(1000)
  for (const [kind, count] of wanted) {
    const known = deliveries.get(kind)
    for (let number = 0; number < count; number++) {
      if (!known?.has(number) && heard.odd.length < 100) heard.odd.push(`soak ${kind}${number} was lost`)
    }
    if ((known?.size ?? 0) > count) heard.odd.push(`more of soak ${kind} were delivered than sent`)
  }
  stop.abort()
  const { reconnects, missed } = await browser.close()
  heard.reconnects = reconnects
  heard.missed = missed
  tick()
  tell(heard, () => process.exit(0))
}

const stop = new AbortController()
process.on('SIGINT', () => {})
process.on('disconnect', () => process.exit(1))
const beginning = Promise.withResolvers<void>()
process.on('message', (message: 'begin' | 'end' | Finish) => {
  if (message === 'begin') {
    beginning.resolve()
    return
  }
  isEnding = true
  if (message !== 'end') void finish(message)
})
const listening = listen(stop.signal)
const browser = createConsole({ link: order.link, random, complain: complaints.add })
setInterval(tick, 1000).unref()
await beginning.promise
// A conversation has two messages in the mean.
for (let due = order.rate > 0 ? 1 : 0; !isEnding; due += (order.rate / 2) * 0.1) {
  await sleep(100)
  for (; due >= 1; due--) begin()
}
await listening
