import { type Chat, openChat } from '../host.ts'
import { serve } from '../serve.ts'
import { asText } from '../shape.ts'

/** A person who writes to an agent, and reads what it answers. */
let chat: Chat | undefined

serve({
  async begin(data) {
    chat = await openChat(asText(data), 0)
  },
  ask: text => chat?.ask(asText(text)),
  end: () => chat?.close(),
})
