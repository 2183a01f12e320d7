import { join } from 'node:path'
import { openTelegram } from '../../../packages/testing/src/channels/telegram/platform.ts'
import { startChild } from '../children.ts'
import type { Contender } from '../contenders.ts'
import {
  type Durability,
  directoryOf,
  type HatchwayOptions,
  refuseRefusals,
  registerWithHatchway,
  startHatchway,
} from '../hatchway.ts'
import { addChannel } from '../host.ts'
import { personOf, telegramJidOf } from '../messages.ts'
import { idleGap, pause, post } from '../post.ts'
import { asStamps, type Done, gather, latencies, type Stamps } from '../stamps.ts'

/** A chat on the stand-in for Telegram, and how long it takes to hear and to say something in it. */
export interface Sides {
  /** from the moment a person has said it */
  heard: Contender
  /** until the stand-in has it */
  said: Contender
}

const patience = 30
/** longer than the daemon gathers what agents say one after another */
const agentGap = 80
let last = 0
const newTexts = (count: number) => Array.from({ length: count }, () => `${++last}.json`)

/** One that does not arrive is an error, and never a sample. */
const measured = (sent: Stamps, done: Done): number[] => {
  if (sent.names.some(name => !done.at.has(name)) || done.repeated > 0)
    throw new Error('a message was lost, or came twice')
  return latencies(sent, done)
}

export const openStandIn = async () => {
  const platform = await openTelegram()
  const { api, bot } = platform
  const person = { id: String(personOf(0)), name: 'Ann' }
  api.world.addRoom({ id: personOf(0), type: 'private', first_name: person.name }, [bot])
  return {
    settings: { token: bot.token, server: api.url(), perSecond: 1000 },
    close: platform.close,
    async say(texts: readonly string[]): Promise<Stamps> {
      const at: bigint[] = []
      for (const text of texts) {
        at.push(process.hrtime.bigint())
        await platform.say(person, telegramJidOf(0), text)
        await pause(idleGap)
      }
      return { names: [...texts], at: BigInt64Array.from(at) }
    },
    /** what the bot has said since it was last asked */
    async taken(): Promise<Stamps> {
      const calls = api.calls.splice(0).filter(({ method }) => method === 'sendMessage')
      return {
        names: calls.map(({ given }) => String(given.text)),
        at: BigInt64Array.from(calls.map(({ at }) => at)),
      }
    },
  }
}

type StandIn = Awaited<ReturnType<typeof openStandIn>>

/** The library alone. */
export const grammySides = async (standIn: StandIn): Promise<Sides> => {
  const child = startChild(new URL('./grammy.process.ts', import.meta.url), 'grammY')
  await child.call('begin', standIn.settings)
  const take = async () => asStamps(await child.call('take'))
  return {
    heard: {
      name: 'grammY hears',
      async block(count) {
        const sent = await standIn.say(newTexts(count))
        return measured(sent, await gather(take, sent.names, patience))
      },
      end: async () => {},
    },
    said: {
      name: 'grammY says',
      async block(count) {
        const sent = asStamps(
          await child.call('send', { chat: personOf(0), texts: newTexts(count), gap: agentGap }),
        )
        return measured(sent, await gather(standIn.taken, sent.names, patience))
      },
      async end() {
        await child.call('end')
        await child.end()
      },
    },
  }
}

/** A daemon with the channel: heard is stored, and said is what an agent's file has asked for, from its commit on. */
export const hatchwaySides = async (
  base: string,
  durability: Durability,
  standIn: StandIn,
): Promise<Sides> => {
  const options: HatchwayOptions = {
    data: join(base, `telegram-${durability}`),
    ...{ durability, groups: 1, dialect: 'hatchway', quotas: 'default', record: 'names', telegram: true },
  }
  await registerWithHatchway(options)
  const hatchway = await startHatchway(options)
  await hatchway.ready()
  await addChannel(options.data, 'telegram', standIn.settings)
  const directory = directoryOf(options.data, 0, 'messages')
  return {
    heard: {
      name: `Hatchway ${durability} hears`,
      async block(count) {
        const sent = await standIn.say(newTexts(count))
        return measured(sent, await gather(hatchway.committed, sent.names, patience))
      },
      end: async () => {},
    },
    said: {
      name: `Hatchway ${durability} says`,
      async block(count) {
        const texts = newTexts(count)
        for (const text of texts) {
          const payload = { jid: telegramJidOf(0), text }
          const id = text.replace('.json', '')
          post(directory, text, JSON.stringify({ version: 1, id, type: 'send_message', payload }))
          await pause(agentGap)
        }
        const taken = await gather(standIn.taken, texts, patience)
        const committed = await gather(hatchway.committed, texts, patience)
        const at = BigInt64Array.from(texts.map(text => committed.at.get(text) ?? 0n))
        return measured({ names: texts, at }, taken)
      },
      async end() {
        await hatchway.stop()
        refuseRefusals(options.data)
      },
    },
  }
}
