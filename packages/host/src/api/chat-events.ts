import type { Chats } from '../chat/chats.ts'
import type { Numbered } from '../chat/feed.ts'
import { type ChatEventAnswer, entryOf } from './chat-answers.ts'
import { eventText, resumed, type StreamOptions, sentEvents } from './sent-events.ts'

/** The chats as server-sent events. */
export const chatEventStream = (
  { feed, web }: Pick<Chats, 'feed' | 'web'>,
  options: StreamOptions,
): ReadableStream<Uint8Array> =>
  sentEvents(options, write => {
    const { id, complete, missed } = resumed(feed, options.after)
    const hello: ChatEventAnswer = { kind: 'hello', complete, typing: [...web.typingIn()] }
    return {
      first: [eventText(id, JSON.stringify(hello)), ...missed.map(textOf)],
      end: feed.subscribe(numbered => write(textOf(numbered))),
    }
  })

const textOf = ({ id, event }: Numbered): string => {
  const answer: ChatEventAnswer =
    event.kind === 'entry' ? { kind: 'entry', entry: entryOf(event.entry) } : event
  return eventText(id, JSON.stringify(answer))
}
