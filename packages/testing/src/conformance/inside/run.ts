import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually, isThere, namesIn } from './boxes.ts'
import { check, must, note, saw } from './evidence.ts'
import type { Kit } from './kit.ts'
import { ordersIn, perform } from './orders.ts'

/** what is kept from one run to the next, where no host has a hand in it */
const folder = '/workspace/group'
const kept = (name: string) => join(folder, name)

export const newSessionId = randomUUID()

export const lastSession = (): string => readFileSync(kept('session'), 'utf8')

export interface Run {
  /** null: nothing to say */
  answer(prompt: string): Promise<string | null>
  /** looks into the boxes in the order in which it was told to, once both are in them if it was told to wait */
  first(): Promise<'close' | 'messages'>
  /** after its answer it leaves things behind and ends */
  isLeaving(): boolean
}

/** The agent reports that it failed, as its project reports it. */
export class Broken extends Error {}

export interface RunFacts {
  kit: Kit
  scheduled: boolean
  sessionId: string | undefined
  script?: string | undefined
  /** the project's own wish to end */
  closed: string
  /** where messages for it come */
  inbox: string
  /** how its project's host tells who said what; left out: in rows, which it puts into words itself */
  said?: RegExp
}

const element = '<message sender="[^"<]+" time="[^"<]+">[^<]*</message>\\n'
/** NanoClaw's form, and that of those that kept its elements without the zone. */
const list = `<messages>\\n(?:${element})+</messages>\\n?`
export const saidInZone = new RegExp(`^(?:<context timezone="[^"]+" />\\n${list})+$`)
export const saidAt = new RegExp(`^(?:${list})+$`)

/** What the stand-in for a model does in a run beside its orders, the same in every project. */
export function createRun({ kit, scheduled, sessionId, script, closed, inbox, said }: RunFacts): Run {
  let hold: 'close-first' | 'close-last' | 'close-before' | undefined
  let leaving = false
  note({ run: newSessionId, scheduled, sessionId })
  void check('fresh', () => {
    const left = [closed, join(inbox, 'left.json')].filter(path => existsSync(path))
    must(left.length === 0, `left behind: ${left.join(', ')}`)
  })

  const knowsSession = () => {
    const last = lastSession()
    must(sessionId === last, `it is told ${sessionId} and not ${last}`)
  }
  const special: Record<string, () => unknown> = {
    slow: () => sleep(3000),
    again: () => check('session', knowsSession),
    tick: () =>
      check('scheduled', () => {
        must(scheduled, 'it is not told that it is scheduled')
        if (sessionId !== undefined) knowsSession()
      }),
    'tick-alone': () =>
      check('isolated', () => must(scheduled && sessionId === undefined, `it is told ${sessionId}`)),
    'tick-script': () => check('script', () => must(script === 'exit 0', `its script is ${script}`)),
    plan: () => plan({ prompt: 'do tick', mode: 'group' }),
    'plan-alone': () => plan({ prompt: 'do tick-alone', mode: 'isolated' }),
    'plan-script': () => plan({ prompt: 'do tick-script', mode: 'isolated', script: 'exit 0' }),
    'plan-finish': () => plan({ prompt: 'do finish', mode: 'group' }),
    'hold-close-first': () => {
      hold = 'close-first'
    },
    'hold-close-last': () => {
      hold = 'close-last'
    },
    'hold-close-before': () => {
      hold = 'close-before'
    },
    leave: () => {
      leaving = true
    },
  }
  const plan = (task: { prompt: string; mode: string; script?: string }) =>
    kit.schedule({ ...task, type: 'once', value: new Date(Date.now() + 2500).toISOString() })

  return {
    async answer(prompt) {
      // What the host itself says stands before it.
      const words = prompt.replace(/^<system_notices>\n[^<]*<\/system_notices>\n/, '')
      if (said && !scheduled) await check('who', () => must(said.test(words), words.slice(0, 300)))
      const orders = ordersIn(prompt)
      for (const [name] of orders) await special[name]?.()
      if (orders.some(([name]) => name === 'fail-once') && !existsSync(kept('failed'))) {
        writeFileSync(kept('failed'), 'yes')
        throw new Broken('it broke on purpose')
      }
      const text = await perform(kit, prompt)
      // What a run with a context of its own gives is nobody's.
      if (!orders.some(([name]) => name === 'tick-alone' || name === 'tick-script'))
        writeFileSync(kept('session'), newSessionId)
      return orders.some(([name]) => name === 'quiet') ? null : text
    },
    async first() {
      const held = hold
      if (!held) return 'close'
      hold = undefined
      await check(held, async () => {
        await eventually('it is asked to finish', () => isThere(closed))
        if (held === 'close-before') {
          await sleep(2500)
          must(namesIn(inbox).length === 0, 'what comes after the wish to finish is not for this run')
        } else await eventually('a message beside the wish', () => namesIn(inbox).length > 0)
      })
      return held === 'close-last' ? 'messages' : 'close'
    },
    isLeaving() {
      if (!leaving) return false
      for (const path of [closed, join(inbox, 'left.json')])
        writeFileSync(path, JSON.stringify({ type: 'message', text: 'do not-for-you' }))
      saw('left', true, closed)
      return true
    },
  }
}
