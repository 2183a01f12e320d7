import type { RunInput } from '@hatchway/protocol'
import { reasonOf } from '@hatchway/spool'
import type { Driver, DriverContext } from '../types.ts'
import { aboutItself } from './about.ts'
import { openConversation } from './conversation.ts'
import { createSpeaker } from './speaker.ts'
import { fileTools } from './tools/files.ts'
import { openHatchTools } from './tools/hatch.ts'
import { type Offer, offerOf } from './tools/offer.ts'
import { createPlaces } from './tools/places.ts'
import { shellTool } from './tools/shell.ts'
import type { AssistantTool } from './tools/types.ts'
import { type Agent, playTurn } from './turn.ts'
import { tokensIn } from './window.ts'

/**
 * An agent of our own for any model.
 *
 *   idle       nothing to answer. Fed → working
 *   working    a turn runs (`turn.ts`). What is fed is heard before the model is asked the next time. The turn ends with
 *              a result or an error → working again with what was fed and not heard, else idle
 *   stopped    `stopTurn` while working: the request or the tool is ended, what was fed and not heard is dropped, and
 *              the turn ends with a result without text → idle
 *   finishing  nothing more is taken or heard; the turn ends → ended
 *   closed     the turn is ended and not told of → ended
 */
export const assistant: Driver = async context => {
  const { emit } = context
  const agent = openAgent(context)
  const sessionId = agent.conversation.id
  emit({ type: 'session', session_id: sessionId })
  let waiting: RunInput[] = []
  let playing: Promise<void> | undefined
  let stopping = new AbortController()
  let finishing = false
  let isClosed = false
  const ended = Promise.withResolvers<void>()

  const next = (): readonly RunInput[] => {
    const inputs = waiting
    waiting = []
    return inputs
  }
  const heardNext = () => (finishing ? [] : next())
  const play = async () => {
    while (waiting.length > 0 && !finishing) {
      stopping = new AbortController()
      const { signal } = stopping
      try {
        emit({ type: 'result', text: await playTurn(agent, heardNext, signal), session_id: sessionId })
      } catch (error) {
        if (isClosed) return
        if (signal.aborted) emit({ type: 'result', text: null, session_id: sessionId })
        else emit({ type: 'error', message: reasonOf(error), session_id: sessionId })
      }
    }
    playing = undefined
  }
  const end = async () => {
    finishing = true
    await playing
    await agent.close()
    ended.resolve()
  }
  return {
    feed(inputs) {
      if (finishing) return
      waiting.push(...inputs)
      playing ??= play()
    },
    stopTurn() {
      waiting = []
      stopping.abort('A person stopped this turn.')
    },
    finish: end,
    async close() {
      isClosed = true
      stopping.abort('The run was ended before this was finished.')
      await end()
    },
    ended: ended.promise,
  }
}

/** Characters of a tool's result: an eighth of what the model can hold, within what is of use. */
const longestResult = (context: number) => Math.min(30_000, Math.max(4000, Math.floor(context / 2)))
/** Tokens of what the model is told before the conversation begins: a sixteenth of what it can hold. */
const mostTold = (context: number) => Math.max(2000, context / 16)

function openAgent(context: DriverContext): Agent & { close(): Promise<void> } {
  const { start, environment, emit } = context
  const { variables } = environment
  const { model } = start
  if (model === null)
    throw new Error(
      'The driver `assistant` needs a model: set `model` in the configuration, such as `ollama/qwen3`.',
    )
  const notice = (text: string) => emit({ type: 'step', kind: 'notice', text })
  const speaker = createSpeaker({ ...start, model }, variables.ANTHROPIC_UNIX_SOCKET, notice)
  const { conversation, problem } = openConversation(
    variables.HOME ?? environment.groupDirectory,
    start.session_id,
    notice,
  )
  if (problem !== undefined)
    notice(`The earlier conversation cannot be gone on with, as ${problem}; a new one begins.`)
  const longest = longestResult(speaker.context)
  const own = [
    shellTool(context, longest),
    ...fileTools({ places: createPlaces(environment), longest, variables }),
  ]
  const hatch = openHatchTools(context)
  const { own: base, instructions } = aboutItself(start, environment, {
    now: new Date(),
    context: speaker.context,
  })
  return {
    context,
    conversation,
    speaker,
    about: base + instructions,
    isFirst: true,
    offer: remembered(own, () => hatch.tools(), mostTold(speaker.context) - tokensIn(base)),
    close: hatch.close,
  }
}

/** Made anew only when the host offers other tools. */
function remembered(
  own: readonly AssistantTool[],
  others: () => readonly AssistantTool[],
  room: number,
): () => Offer {
  let made: { of: readonly AssistantTool[]; offer: Offer } | undefined
  return () => {
    const found = others()
    if (made?.of !== found) made = { of: found, offer: offerOf(own, found, room) }
    return made.offer
  }
}
