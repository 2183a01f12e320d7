import type { Group } from '@hatchway/protocol'
import { createVisibleText, type VisibleText } from './channels/internal.ts'

/**
 * What agents are writing, for people who look on: it is in memory alone, and no message. An agent's live text is
 *
 *   (none)    its turn has begun. Words → growing
 *   growing   each piece is shown within a moment, until there is more than a turn may have. The agent uses a tool → broken
 *             off; its turn is over → lingering
 *   broken    what is shown stays until the next words, which begin anew → growing
 *   lingering nothing more is added. Its answer is delivered, or does not come for a while → (none)
 *
 * An agent may lie: it says as its answer whatever it likes, so it is shown only what its answer would show, and no more
 * often than people can read.
 */
export interface LiveTexts {
  /** the next words of the group's agent */
  grow(group: LiveGroup, piece: string): void
  /** what the agent says next is another text */
  breakOff(folder: string): void
  /** the turn is over: its answer, if there is one, is stored */
  over(folder: string): void
  /** something was said in the chat */
  said(jid: string): void
  /** what is shown of it */
  of(folder: string): string | undefined
  all(): readonly LiveText[]
  stop(): void
}

type LiveGroup = Pick<Group, 'folder' | 'jid'>

interface LiveText {
  jid: string
  text: string
}

/** From the unit `from` on, the live text of a chat is this; an empty one is over. */
export interface LiveTextChange extends LiveText {
  from: number
}

/** of one turn, hidden parts and texts that were broken off included */
export const longestLiveText = 200_000
const everyMs = 250
const lingerMs = 3000

interface Growing {
  jid: string
  visible: VisibleText
  text: string
  /** characters of `text` that are shown */
  shown: number
  /** something is shown: this text, or the one before it that was broken off */
  isSeen: boolean
  /** characters that the agent has sent in this turn */
  taken: number
  state: 'growing' | 'broken' | 'lingering'
  /** by the clock that only goes forward */
  changedAt: number
  timer: NodeJS.Timeout | undefined
}

export interface LiveTextsOptions {
  /** whether what the group's agent says in its chat may be shown before it is whole */
  mayShow(group: LiveGroup): boolean
  show(change: LiveTextChange): void
}

export function createLiveTexts({ mayShow, show }: LiveTextsOptions): LiveTexts {
  const texts = new Map<string, Growing>()

  const begin = ({ folder, jid }: LiveGroup): Growing => {
    end(folder)
    const text: Growing = {
      ...{ jid, visible: createVisibleText(), text: '', shown: 0, isSeen: false },
      ...{ taken: 0, state: 'growing', changedAt: -everyMs, timer: undefined },
    }
    texts.set(folder, text)
    return text
  }
  const hide = (text: Growing) => {
    if (text.isSeen) show({ jid: text.jid, from: 0, text: '' })
    text.isSeen = false
    text.shown = 0
  }
  const end = (folder: string) => {
    const text = texts.get(folder)
    if (!text) return
    clearTimeout(text.timer)
    texts.delete(folder)
    hide(text)
  }
  const bring = (folder: string, text: Growing) => {
    text.timer = undefined
    if (!mayShow({ folder, jid: text.jid })) {
      // What the agent has read, or the group, has changed: nothing of this turn is shown any more.
      text.taken = longestLiveText
      text.text = ''
      return hide(text)
    }
    if (text.shown === text.text.length) return
    show({ jid: text.jid, from: text.shown, text: text.text.slice(text.shown) })
    text.shown = text.text.length
    text.isSeen = true
    text.changedAt = performance.now()
  }

  return {
    grow(group, piece) {
      const { folder, jid } = group
      const known = texts.get(folder)
      const text = known && known.jid === jid && known.state !== 'lingering' ? known : begin(group)
      if (text.taken + piece.length > longestLiveText) {
        text.taken = longestLiveText
        return
      }
      text.taken += piece.length
      const words = text.visible.take(piece).toWellFormed()
      if (words === '') return
      if (text.state === 'broken') {
        text.state = 'growing'
        text.text = ''
        text.shown = 0
      }
      text.text = text.text === '' ? words.trimStart() : text.text + words
      text.timer ??= setTimeout(
        () => bring(folder, text),
        Math.max(0, text.changedAt + everyMs - performance.now()),
      ).unref()
    },
    breakOff(folder) {
      const text = texts.get(folder)
      if (text?.state !== 'growing') return
      text.visible.breakOff()
      text.state = 'broken'
    },
    over(folder) {
      const text = texts.get(folder)
      if (!text || text.state === 'lingering') return
      clearTimeout(text.timer)
      text.state = 'lingering'
      text.timer = setTimeout(() => end(folder), lingerMs).unref()
    },
    said(jid) {
      for (const [folder, text] of texts) if (text.jid === jid && text.state === 'lingering') end(folder)
    },
    of(folder) {
      const text = texts.get(folder)
      return text && text.shown > 0 ? text.text.slice(0, text.shown) : undefined
    },
    all: () =>
      [...texts.values()].flatMap(({ jid, text, shown }) =>
        shown === 0 ? [] : [{ jid, text: text.slice(0, shown) }],
      ),
    stop() {
      for (const { timer } of texts.values()) clearTimeout(timer)
      texts.clear()
    },
  }
}
