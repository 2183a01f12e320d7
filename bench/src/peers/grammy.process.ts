import { layoutOf } from '../../../packages/host/src/base/layout.ts'
import { createLibrary } from '../../../packages/host/src/plugins/channels/library.ts'
import type { Grammy } from '../../../packages/host/src/plugins/channels/telegram/bot.ts'
import { telegram } from '../../../packages/host/src/plugins/channels/telegram/kind.ts'
import { pause } from '../post.ts'
import { serve } from '../serve.ts'
import { asFields, asNumber, asText, asTexts } from '../shape.ts'
import { stampLog } from '../stamps.ts'

/** What the library does alone: it fetches what is said, and says something. Nothing is kept. */
const heard = stampLog()
let bot: InstanceType<Grammy['Bot']> | undefined

serve({
  async begin(argument) {
    const { token, server } = asFields(argument)
    const { Bot } = await createLibrary(layoutOf('/nowhere'), telegram)<Grammy>('grammy')
    bot = new Bot(asText(token), { client: { apiRoot: asText(server) } })
    bot.on('message:text', ({ message }) => heard.add(message.text, process.hrtime.bigint()))
    const begun = Promise.withResolvers<void>()
    void bot.start({ onStart: () => begun.resolve() })
    await begun.promise
  },
  take: () => heard.take(),
  async send(argument) {
    const { chat, texts, gap } = asFields(argument)
    const sent = stampLog()
    for (const text of asTexts(texts)) {
      sent.add(text, process.hrtime.bigint())
      await bot?.api.sendMessage(asNumber(chat), text)
      await pause(asNumber(gap))
    }
    return sent.take()
  },
  end: () => bot?.stop(),
})
