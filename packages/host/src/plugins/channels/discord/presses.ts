import type { APIInteraction } from '@discordjs/core'
import type { Logger } from 'pino'
import { within } from '../../../base/pause.ts'
import type { ChannelHost } from '../../../chat/channels/types.ts'
import type { DiscordApi } from './api.ts'
import { pressIn } from './buttons.ts'
import { silent } from './delivery.ts'
import { literal } from './markup.ts'
import type { Places } from './places.ts'
import { personOf } from './said.ts'

/** Discord takes the first answer within three seconds only. */
const quickMs = 2000
const longestNotice = 2000
/** only whoever pressed sees it */
const ephemeral = 64
const component = 3
const settled = 'This is settled already.'
const failed = 'This could not be noted. Press the button again in a moment.'

interface PressOptions {
  host: Pick<ChannelHost, 'choose' | 'decide'>
  discord: DiscordApi
  places: Places
  log: Logger
}

/** Settles what a button stands for, and tells whoever pressed it what is wrong; never rejects. */
export async function answerPress(interaction: APIInteraction, options: PressOptions): Promise<void> {
  const { discord, log } = options
  const { id, token, application_id } = interaction
  const settling = settle(interaction, options).catch(error => {
    log.error({ err: error }, 'a press of a button on Discord could not be taken')
    return failed
  })
  try {
    const notice = (await within(quickMs, settling)) ? await settling : undefined
    if (notice === undefined) {
      await discord.ask((api, signal) => api.interactions.deferMessageUpdate(id, token, {}, { signal }))
    } else {
      await discord.ask((api, signal) => api.interactions.reply(id, token, told(notice), { signal }))
      return
    }
    const late = await settling
    if (late !== undefined)
      await discord.ask((api, signal) =>
        api.interactions.followUp(application_id, token, told(late), { signal }),
      )
  } catch (error) {
    // Discord takes no answer to what was answered before or pressed a while ago; what was decided is decided.
    log.debug({ reason: String(error) }, 'a press of a button was not answered')
  }
}

const told = (notice: string) => ({
  content: literal(notice).slice(0, longestNotice),
  flags: ephemeral,
  allowed_mentions: silent,
})

/** What is wrong with it; undefined: nothing. */
async function settle(
  interaction: APIInteraction,
  { host, places }: PressOptions,
): Promise<string | undefined> {
  const { member, channel } = interaction
  const user = member?.user ?? interaction.user
  if (interaction.type !== component || !user || !channel) return settled
  const pressed = pressIn(interaction.data.custom_id)
  if (!pressed) return settled
  const { chat } = await places.of(channel.id)
  const by = { jid: chat.jid, ...personOf(user, member) }
  const outcome =
    pressed.kind === 'choice'
      ? await host.choose({ ...by, id: pressed.id, question: 1, answer: { option: pressed.option } })
      : await host.decide({ ...by, id: pressed.id, decision: pressed.decision })
  return outcome.ok ? undefined : outcome.error.message
}
