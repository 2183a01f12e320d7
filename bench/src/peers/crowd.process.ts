import { type Chat, openChat } from '../host.ts'
import { serve } from '../serve.ts'
import { asText } from '../shape.ts'

/** Twenty people, each in the chat of a group of their own, who write at the same moment. */
const people = 20
let chats: Chat[] = []

serve({
  async begin(data) {
    chats = await Promise.all(Array.from({ length: people }, (_, group) => openChat(asText(data), group)))
  },
  /** milliseconds until the last has an answer */
  async ask(text) {
    const begun = performance.now()
    const answers = await Promise.all(chats.map(chat => chat.ask(asText(text))))
    const wrong = answers.find(answer => answer.text !== 'It is written.')
    if (wrong) throw new Error(wrong.text)
    return performance.now() - begun
  },
  end: () => Promise.all(chats.map(chat => chat.close())),
})
