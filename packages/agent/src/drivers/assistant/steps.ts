import type { DriverContext } from '../types.ts'
import type { Listener } from './apis/types.ts'

/**
 * The answer while it comes: its words for people who look on, and as steps, one for each piece that can be read. A call
 * that a model writes as text is not among the words.
 */
export interface StepListener extends Listener {
  /** what is left; everything that was said since it was made */
  end(): string
}

const everyMs = 500
const shortest = 40
const opening = '<think>'
const closing = '</think>'
const callMark = '<tool_call>'

export function listenInSteps(emit: DriverContext['emit']): StepListener {
  let waiting = ''
  let kind: 'text' | 'thinking' = 'text'
  let flushedAt = performance.now()
  let all = ''

  const flush = (text: string) => {
    flushedAt = performance.now()
    if (text.trim() !== '') emit({ type: 'step', kind, text })
  }
  let held = ''
  let isCall = false
  const speak = (piece: string) => {
    if (isCall) return
    const words = held + piece
    const at = words.indexOf(callMark)
    isCall = at >= 0
    const end = isCall ? at : words.length - begunIn(words, callMark)
    held = words.slice(end)
    if (end > 0) emit({ type: 'delta', text: words.slice(0, end) })
  }
  const hear = (piece: string, of: typeof kind) => {
    if (of === 'text') speak(piece)
    if (of !== kind) {
      flush(waiting)
      waiting = ''
      kind = of
    }
    waiting += piece
    if (performance.now() - flushedAt < everyMs || waiting.length < shortest) return
    const end = waiting.search(/\s\S*$/)
    if (end <= 0) return
    flush(waiting.slice(0, end))
    waiting = waiting.slice(end)
  }
  /** Models whose server does not tell thinking apart begin their text with it. */
  let isThinking: boolean | undefined
  const hearText = (piece: string) => {
    all += piece
    const start = all.trimStart()
    if (isThinking === undefined) {
      if (opening.startsWith(start)) return
      isThinking = start.startsWith(opening)
      return hear(isThinking ? start.slice(opening.length) : all, isThinking ? 'thinking' : 'text')
    }
    if (!isThinking) return hear(piece, 'text')
    hear(piece, 'thinking')
    if (!all.includes(closing)) return
    isThinking = false
    const [thought = '', text = ''] = waiting.split(closing)
    waiting = thought
    hear(text, 'text')
  }
  return {
    text: hearText,
    thinking: piece => hear(piece, 'thinking'),
    end() {
      if (isThinking === undefined) hear(all, 'text')
      flush(waiting)
      waiting = ''
      if (!isCall && held !== '') emit({ type: 'delta', text: held })
      held = ''
      return all
    },
  }
}

/** How much of the mark the text ends with. */
function begunIn(text: string, mark: string): number {
  for (let length = Math.min(text.length, mark.length - 1); length > 0; length--)
    if (text.endsWith(mark.slice(0, length))) return length
  return 0
}
