import type { Logger } from 'pino'
import { z } from 'zod'
import type { ChannelHost } from '../../../chat/channels/types.ts'
import type { Bot } from './bot.ts'

/**
 * Further bots that show who speaks: each has the name of one sender. A name that is changed changes on everything the
 * bot has ever said, so a bot goes to another sender only after it has rested for a while.
 */
export interface Pool {
  /** undefined: all of them speak for somebody else */
  botFor(sender: string): Promise<Bot | undefined>
}

const restMs = 3_600_000
const noteMs = 600_000
const storedSchema = z.array(z.object({ bot: z.int(), name: z.string(), usedAt: z.number() }))
const key = 'pool'

interface Member {
  bot: Bot
  name: string | undefined
  usedAt: number
  /** Telegram has been told its name */
  named: Promise<boolean>
}

export function createPool(options: {
  bots: readonly Bot[]
  memory: Pick<ChannelHost, 'recall' | 'remember'>
  log: Logger
  now(): number
}): Pool {
  const { memory, log, now } = options
  const stored = storedSchema.parse(JSON.parse(memory.recall(key) ?? '[]'))
  const members = options.bots.map((bot): Member => {
    const before = stored.find(one => one.bot === bot.id)
    return { bot, name: before?.name, usedAt: before?.usedAt ?? 0, named: Promise.resolve(true) }
  })
  const save = () =>
    memory.remember(
      key,
      JSON.stringify(
        members.flatMap(({ bot, name, usedAt }) => (name === undefined ? [] : { bot: bot.id, name, usedAt })),
      ),
    )

  const rename = async (member: Member, name: string): Promise<boolean> => {
    try {
      await member.bot.ask((api, signal) => api.setMyName({ name }, signal))
      save()
      return true
    } catch (error) {
      log.warn({ bot: member.bot.id, reason: String(error) }, 'a bot of the pool could not be given a name')
      member.name = undefined
      return false
    }
  }

  return {
    async botFor(name) {
      let member = members.find(one => one.name === name)
      if (!member) {
        member = members.toSorted((a, b) => a.usedAt - b.usedAt)[0]
        if (!member || now() - member.usedAt < restMs) return undefined
        // Taken before Telegram is asked: another chat must not take it meanwhile.
        member.name = name
        member.usedAt = now()
        member.named = rename(member, name)
      }
      const isDue = now() - member.usedAt > noteMs
      member.usedAt = now()
      if (isDue) save()
      return (await member.named) ? member.bot : undefined
    },
  }
}
