import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { pynchy } from '../../writers/writers.ts'
import type { GroupsByLife, SoakGroup } from '../plan.ts'
import { type Activity, inTurn, type Poster } from '../poster.ts'

const madeTodo = z.object({ todo: z.object({ id: z.string() }) })

/** What agents ask of services and of people. */
export function requestActivities(poster: Poster, { of }: GroupsByLife): Activity[] {
  const { random, ask, askFor, callFor } = poster

  const remember = async (group: SoakGroup) => {
    const key = `fact-${random.below(5)}`
    const [tool, input] = random.pick([
      ['save_memory', { key, content: `the number ${random.below(1000)} is of ${key}` }],
      ['save_memory', { key, content: `${key} is about tea and coffee` }],
      ['recall_memories', { query: `number of ${key}` }],
      ['list_memories', {}],
    ] as const)
    await callFor(group, 'memory', tool, input)
    if (!random.chance(0.2)) return
    const payload = { tool: 'forget_memory', arguments: { key } }
    // There may be none of this key.
    await ask(group, { kind: 'memory', type: 'call_service', payload, isTimed: false })
  }

  const list = async (group: SoakGroup) => {
    const added = await callFor(group, 'todo', 'add_todo', { content: `buy ${random.below(1000)} eggs` })
    const made = madeTodo.safeParse(added.result)
    if (made.success) await callFor(group, 'todo', 'complete_todo', { todo_id: made.data.todo.id })
    else poster.complain('a todo was made without an id')
  }

  const askAsPynchy = (group: SoakGroup) => {
    const id = poster.nextId()
    const kind = 'request of Pynchy’s'
    poster.sent.asked++
    poster.receipts.expect(join(poster.inboxOf(group), 'responses'), id, false, ({ ok, code }) => {
      poster.sent.answered++
      if (!ok) poster.complain(`a ${kind} was answered with ${code}`)
    })
    if (random.chance(0.5)) return poster.say(group, pynchy, 'check_shell', kind, { requestId: id })
    poster.count(kind)
    poster.drop(group, 'tasks', JSON.stringify({ type: 'service:look', request_id: id }))
  }

  /** What its group has read makes that a person has to allow it. */
  const publish = async (group: SoakGroup) => {
    const payload = { tool: 'publish', arguments: { text: `news ${poster.written()}` } }
    const kind = 'to be allowed by a person'
    const { ok, code = 'unknown' } = await ask(group, { kind, type: 'call_service', payload, isTimed: false })
    const end = ok ? 'allowed' : code
    if (!ok) poster.refusedIn(group)
    poster.sent.published[end] = (poster.sent.published[end] ?? 0) + 1
    if (!['allowed', 'denied', 'expired'].includes(end)) poster.complain(`a request to be allowed: ${end}`)
  }

  const askPeople = async (group: SoakGroup) => {
    const id = poster.nextId()
    const options = [{ label: 'Tea' }, { label: 'Coffee' }]
    const payload = { questions: [{ question: `Tea or coffee, ${id}?`, options }] }
    const asked = ask(group, { kind: 'question to people', type: 'ask_user', payload, isTimed: false, id })
    if (random.chance(0.2)) {
      await sleep(500)
      const taken = { kind: 'question taken back', type: 'cancel_request', payload: { request_id: id } }
      // People may have been quicker; a request that is over cannot be taken back.
      if (!(await ask(group, taken)).ok) poster.refusedIn(group)
    }
    const { ok, code } = await asked
    if (!ok && code !== 'cancelled' && code !== 'expired')
      poster.complain(`a question was answered with ${code}`)
  }

  const shell = { kind: 'shell check', type: 'check_shell', payload: { command: 'ls -l' }, isTimed: false }
  return [
    { name: 'memory', often: 600, act: inTurn(of('asking'), remember) },
    { name: 'todo', often: 200, act: inTurn(of('asking').slice(0, 4), list) },
    {
      name: 'service',
      often: 900,
      act: inTurn(of('asking'), group => callFor(group, 'service call', 'look', {})),
    },
    {
      name: 'pynchy',
      often: 300,
      act: inTurn(
        of('flat').filter(({ dialect }) => dialect === 'pynchy'),
        askAsPynchy,
      ),
    },
    { name: 'shell', often: 150, act: inTurn(of('asking'), group => askFor(group, shell)) },
    { name: 'approval', often: 60, act: inTurn(of('guarded'), publish) },
    { name: 'question', often: 40, act: inTurn(of('asking'), askPeople) },
  ]
}
