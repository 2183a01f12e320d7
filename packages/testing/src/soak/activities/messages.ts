import { closeSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { layoutOf } from '../../../../host/src/base/layout.ts'
import { nanoclaw, novabotDocument } from '../../writers/writers.ts'
import { type GroupsByLife, largestFile, type SoakGroup } from '../plan.ts'
import { type Activity, inTurn, type Poster } from '../poster.ts'
import { writerFor } from './dialects.ts'

/** What agents say: in all dialects, whole or in halves, once or twice, with and without files. */
export function messageActivities(poster: Poster, { of }: GroupsByLife): Activity[] {
  const { random, askFor, say, nextMessage } = poster
  const speaking = of('flat').filter(({ dialect }) => dialect !== 'mdclaw')
  const anywhere = of('asking', 'flat', 'inhabited')
  const asked = () => ({ kind: 'message', type: 'send_message', payload: { text: nextMessage() } })

  const speak = (group: SoakGroup) => {
    const op =
      group.dialect === 'novabot' ? random.pick(['send_message', 'reply', 'speak'] as const) : 'send_message'
    const asDocumented = group.dialect === 'novabot' && op === 'send_message' && random.chance(0.2)
    const writer = asDocumented ? novabotDocument : writerFor(group)
    say(group, writer, op, 'flat message', { mark: nextMessage() })
  }

  /** Once it is answered, the same again: that must be answered the same, and not be said again. */
  const sayTwice = async (group: SoakGroup) => {
    const saying = { ...asked(), id: poster.nextId(), directory: 'messages' }
    const first = await askFor(group, saying)
    const second = await askFor(group, { ...saying, kind: 'the same again' })
    if (JSON.stringify(first) !== JSON.stringify(second)) {
      poster.complain(`${saying.id} was answered in two ways`)
    }
  }

  /** A shell in the agent: first one half, and the other when the shell gets to it. */
  const writeInHalves = async (group: SoakGroup) => {
    const text = JSON.stringify({ type: 'message', chatJid: group.jid, text: nextMessage() })
    const path = join(
      poster.inboxOf(group),
      'messages',
      `shell-${poster.sent.process}-${poster.written()}.json`,
    )
    poster.count('message in two halves')
    const half = Math.floor(text.length / 2)
    const file = openSync(path, 'w')
    writeSync(file, text.slice(0, half))
    await sleep(20 + random.below(200))
    writeSync(file, text.slice(half))
    closeSync(file)
  }

  const sendFile = async (group: SoakGroup) => {
    const name = `plan-${poster.written()}.txt`
    const folder = join(layoutOf(poster.data).groups, group.folder, 'out')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, name), 'x'.repeat(1 + random.below(largestFile)))
    const payload = { text: nextMessage(), attachments: [{ path: `out/${name}` }] }
    await askFor(group, { kind: 'message with a file', type: 'send_message', payload, isTimed: false })
    rmSync(join(folder, name))
  }

  return [
    {
      name: 'message',
      often: 2500,
      act: inTurn(of('asking'), group => askFor(group, { ...asked(), directory: 'messages' })),
    },
    { name: 'flat', often: 1900, act: inTurn(speaking, speak) },
    // What is written is recognised by itself, whoever lives there.
    {
      name: 'flat',
      often: 500,
      act: inTurn(anywhere, group =>
        say(group, nanoclaw, 'send_message', 'flat message', { mark: nextMessage() }),
      ),
    },
    {
      name: 'reaction',
      often: 300,
      act: inTurn(of('asking'), group =>
        askFor(group, { kind: 'reaction', type: 'react', payload: { emoji: '👍' }, directory: 'messages' }),
      ),
    },
    { name: 'twice', often: 150, act: inTurn(of('asking'), sayTwice) },
    { name: 'halves', often: 200, act: inTurn(anywhere, writeInHalves) },
    { name: 'file', often: 50, act: inTurn(of('asking').slice(-8), sendFile) },
  ]
}
