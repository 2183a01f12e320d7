import type { DriverContext } from '../types.ts'
import type { Listener } from './apis/types.ts'

/** The answer as steps while it comes: a step for each piece that people can read, not for each word. */
export interface StepListener extends Listener {
  /** what is left; everything that was said since it was made */
  end(): string
}

const everyMs = 500
const shortest = 40
const opening = '<think>'
const closing = '</think>'

export function listenInSteps(emit: DriverContext['emit']): StepListener {
  let waiting = ''
  let kind: 'text' | 'thinking' = 'text'
  let flushedAt = performance.now()
  let all = ''

  const flush = (text: string) => {
    flushedAt = performance.now()
    if (text.trim() !== '') emit({ type: 'step', kind, text })
  }
  const hear = (piece: string, of: typeof kind) => {
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
      return all
    },
  }
}
