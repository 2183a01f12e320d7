import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createNames, post } from '@hatchway/spool'
import { z } from 'zod'
import { approvalsAnswer } from '../../../host/src/api/chat-answers.ts'
import type { Random } from '../random.ts'
import { type Asked, isHeld, isTask, type Kind, type RequestLog } from './request-log.ts'
import type { Folder, Testbed } from './testbed.ts'

/** People who write and decide, and agents who ask: all that reaches the system while faults occur. */
export interface Traffic {
  /** asks for something, chosen by chance; never waits */
  tick(random: Random): void
  /** a message that is certain to be new, and its word */
  say(folder: 'ann' | 'bob'): string
  ask(kind: Kind, random: Random): Asked | undefined
  /** writes again what nobody has taken, decides what waits, and reads the answers that lie there */
  goOn(): Promise<void>
  /** until nothing is under way any more */
  settle(): Promise<void>
  /** reads and removes the answers that lie there, as agents do */
  collect(): void
}

export interface TrafficOptions {
  testbed: Testbed
  requestLog: RequestLog
  /** when the daemon believes it is; left out: when it is */
  now?: () => number
}

/** Sessions are dear: no more of these are allowed in one installation than it can run. */
const most: Partial<Record<Kind, number>> = { interval: 2, cron: 1, job: 5 }
const receipt = z.object({ ok: z.boolean(), error: z.object({ code: z.string() }).optional() })
const failure = z.object({ error: z.object({ code: z.string() }) })
const asking: readonly Folder[] = ['main', 'office', 'desk', 'vault']
const freshName = createNames()

export function createTraffic({ testbed, requestLog, now = Date.now }: TrafficOptions): Traffic {
  const underWay = new Set<Promise<void>>()
  const deciding = new Set<string>()
  const taking = new Set<string>()

  const inBackground = (work: Promise<void>) => {
    const noted = work.finally(() => underWay.delete(noted))
    underWay.add(noted)
  }
  const refused = (status: number, text: string) => {
    const code = failure.safeParse(parsed(text)).data?.error.code ?? 'not told why'
    const name = `${status} ${code}`
    requestLog.refusals.set(name, (requestLog.refusals.get(name) ?? 0) + 1)
  }

  /** With the same id each time: the host takes it once. */
  const deliver = async (said: RequestLog['said'][number]) => {
    const { word, folder } = said
    if (taking.has(word)) return
    taking.add(word)
    const text = folder === 'ann' ? `remember that the word is ${word}` : `say ${word}`
    const answer = await testbed.ask('POST', `/api/chats/local:${folder}/messages`, { text, id: word })
    taking.delete(word)
    if (answer && answer.status < 300) said.isTaken = true
    else if (answer) refused(answer.status, answer.text)
  }

  const drop = (asked: Asked): boolean => {
    try {
      post(join(testbed.layout.ipc, asked.folder, 'tasks'), asked.body, { name: freshName() })
      return true
    } catch (error) {
      // The disk is full: nothing was asked.
      if (error instanceof Error && 'code' in error && error.code === 'ENOSPC') return false
      throw error
    }
  }

  const payloadOf = (kind: Kind, word: string, random: Random): { type: string; payload: object } => {
    const schedule = (schedule_type: string, schedule_value: string) => ({
      type: 'schedule_task',
      payload: {
        task_id: word,
        group: 'clock',
        prompt: `tick ${word}`,
        context_mode: 'isolated',
        schedule_type,
        schedule_value,
      },
    })
    const call = (tool: string, input: object) => ({
      type: 'call_service',
      payload: { tool, arguments: input },
    })
    switch (kind) {
      case 'note_again':
      case 'note_once':
      case 'publish_again':
      case 'publish_once':
        return call(kind, { text: word, ms: random.below(400) })
      case 'todo':
        return call('add_todo', { content: word })
      case 'memory':
        return call('save_memory', { key: word, content: `what is kept under ${word}` })
      case 'message':
        return { type: 'send_message', payload: { text: word } }
      case 'file':
        return {
          type: 'send_message',
          payload: { text: word, attachments: [{ path: '/workspace/group/picture.txt' }] },
        }
      case 'once':
        return schedule('once', new Date(now() + 1000 + random.below(8000)).toISOString())
      case 'interval':
        return schedule('interval', String(4000 + random.below(4000)))
      case 'cron':
        return schedule('cron', '* * * * *')
      case 'job':
        return {
          type: 'schedule_host_job',
          payload: {
            name: word,
            command: `echo "$HATCHWAY_RUN" >> ${word}`,
            timeout_seconds: 30,
            schedule_type: 'interval',
            schedule_value: String(1500 + random.below(3000)),
          },
        }
    }
  }

  const ask = (kind: Kind, random: Random): Asked | undefined => {
    const isWanted = ({ wish }: Asked) => wish !== 'deny' && wish !== 'leave'
    const wanted = requestLog.asked.filter(asked => asked.kind === kind && isWanted(asked))
    if (wanted.length >= (most[kind] ?? Number.POSITIVE_INFINITY)) return undefined
    const word = requestLog.word(kind === 'job' ? 'j' : isTask({ kind }) ? 't' : 'r')
    const id = `ask-${word}`
    const folder = folderFor(kind, random)
    const { type, payload } = payloadOf(kind, word, random)
    const asked: Asked = {
      id,
      kind,
      folder,
      word,
      body: JSON.stringify({ version: 1, id, type, payload, sent_at: new Date().toISOString() }),
      wish: undefined,
      answer: undefined,
    }
    const chance = random.below(100)
    if (isHeld(asked)) asked.wish = chance < 60 ? 'allow' : chance < 85 ? 'deny' : 'leave'
    if (!drop(asked)) return undefined
    requestLog.asked.push(asked)
    return asked
  }

  const say = (folder: 'ann' | 'bob') => {
    const said = { word: requestLog.word('w'), folder, isTaken: false }
    requestLog.said.push(said)
    inBackground(deliver(said))
    return said.word
  }

  const decide = async () => {
    const open = await testbed.get('/approvals?limit=1000', approvalsAnswer)
    for (const { id, action } of open ?? []) {
      const word = wordIn(action)
      const wish = requestLog.asked.find(asked => asked.word === word)?.wish
      if (wish === undefined || wish === 'leave' || deciding.has(id)) continue
      deciding.add(id)
      const answer = await testbed.ask('POST', `/approvals/${id}`, { decision: wish })
      if (answer && answer.status >= 300) refused(answer.status, answer.text)
      deciding.delete(id)
    }
  }

  const collect = () => {
    for (const folder of asking) {
      const directory = join(testbed.layout.ipc, folder, 'responses')
      if (!existsSync(directory)) continue
      for (const name of readdirSync(directory)) {
        if (!name.endsWith('.json') || name.endsWith('.progress.json')) continue
        const asked = requestLog.asked.find(({ id }) => `${id}.json` === name)
        const path = join(directory, name)
        const text = readFileSync(path, 'utf8')
        rmSync(path)
        const { ok, error } = receipt.parse(JSON.parse(text))
        const answer = { ok, code: error?.code }
        if (!asked) requestLog.contradictions.push(`${name} answers what nobody asked`)
        else if (asked.answer && JSON.stringify(asked.answer) !== JSON.stringify(answer)) {
          const [first, second] = [asked.answer, answer].map(one => one.code ?? 'done')
          requestLog.contradictions.push(
            `${asked.kind} ${asked.word} was answered ${first} and then ${second}`,
          )
        } else asked.answer = answer
      }
    }
  }

  const usual: readonly Kind[] = [
    ...(['note_again', 'note_once', 'note_again', 'note_once', 'todo', 'memory', 'message'] as const),
    ...([
      'file',
      'publish_again',
      'publish_once',
      'publish_once',
      'once',
      'interval',
      'cron',
      'job',
    ] as const),
  ]

  return {
    ask,
    say,
    tick(random) {
      if (random.chance(0.06)) say(random.pick(['ann', 'bob']))
      if (random.chance(0.6)) ask(random.pick(usual), random)
      // The same request again, as an agent does that saw no answer: it must change nothing.
      const again = requestLog.asked[random.below(requestLog.asked.length * 20 + 1)]
      if (again) drop(again)
      // Refused, and kept among the refused ones.
      if (random.chance(0.02)) {
        drop({
          ...empty,
          body: '{"version":1,"type":"no_such_command"}',
          folder: 'desk',
        })
      }
      if (random.chance(0.15)) inBackground(decide())
      if (random.chance(0.3)) collect()
    },
    async goOn() {
      await Promise.all(requestLog.said.filter(({ isTaken }) => !isTaken).map(deliver))
      await decide()
      collect()
    },
    async settle() {
      await Promise.all(underWay)
    },
    collect,
  }
}

const empty: Asked = {
  id: '',
  kind: 'message',
  folder: 'desk',
  word: '',
  body: '',
  wish: undefined,
  answer: undefined,
}

function folderFor(kind: Kind, random: Random): Folder {
  if (kind === 'job') return 'office'
  if (isTask({ kind })) return random.chance(0.3) ? 'office' : 'main'
  return kind.startsWith('publish') ? 'vault' : 'desk'
}

/** Of what a person was asked to allow. */
export const wordIn = (action: object): string | undefined =>
  /\b[rjt]\d{5}\b/.exec(JSON.stringify(action))?.[0]

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
