import type { Logger } from 'pino'
import type { DiscordApi } from './api.ts'
import { DiscordRefusal } from './refusals.ts'

/** Webhooks of ours, one for each channel: they speak under any name, which shows the `sender`. */
export interface Webhooks {
  /** undefined: the bot may not have one here */
  of(channel: string): Promise<Webhook | undefined>
  /** it is no more */
  forget(channel: string): void
}

export interface Webhook {
  id: string
  token: string
}

/** Refused requests count towards a ban, so it is not asked again for a while. */
const refusedMs = 600_000

export function createWebhooks({
  discord,
  log,
  now,
}: {
  discord: DiscordApi
  log: Logger
  now(): number
}): Webhooks {
  const known = new Map<string, Webhook>()
  const refusedAt = new Map<string, number>()
  let application: string | undefined

  const find = async (channel: string): Promise<Webhook> => {
    application ??= (await discord.ask((api, signal) => api.applications.getCurrent({ signal }))).id
    const all = await discord.ask(api => api.channels.getWebhooks(channel))
    const ours = all.find(
      ({ application_id, token }) => application_id === application && token !== undefined,
    )
    const { id, token = '' } =
      ours ??
      (await discord.ask((api, signal) =>
        api.channels.createWebhook(channel, { name: 'Hatchway' }, { signal }),
      ))
    return { id, token }
  }

  return {
    async of(channel) {
      const before = known.get(channel)
      if (before) return before
      if (now() - (refusedAt.get(channel) ?? Number.NEGATIVE_INFINITY) < refusedMs) return undefined
      try {
        const webhook = await find(channel)
        known.set(channel, webhook)
        return webhook
      } catch (error) {
        if (!(error instanceof DiscordRefusal && error.isFinal)) throw error
        log.info({ channel, reason: error.message }, 'names of senders stand before the text here')
        refusedAt.set(channel, now())
        return undefined
      }
    },
    forget: channel => void known.delete(channel),
  }
}
