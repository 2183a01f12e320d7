import type { Group } from '@hatchway/protocol'
import { createVisibleText, type VisibleText } from './channels/internal.ts'
import { nameOfTool } from './tool-name.ts'

/**
 * What agents are writing and which tool they use, for people who look on: it is in memory alone, and no message. An
 * agent's live text is
 *
 *   (none)    its turn has begun. Words → growing; a tool → broken
 *   growing   each piece is shown within a moment, until there is more than a turn may have. The agent uses a tool →
 *             broken; its turn is over → lingering
 *   broken    the tool is shown, and what was said before it, until the next words, which begin anew → growing
 *   lingering nothing more is added. Its answer is delivered, or does not come for a while → (none)
 *
 * An agent may lie: it says as its answer whatever it likes, so it is shown only what its answer would show, and no more
 * often than people can read.
 */
export interface LiveTexts {
  /** the next words of the group's agent */
  grow(group: LiveGroup, piece: string): void
  /** the agent uses a tool: what it says next is another text */
  uses(group: LiveGroup, tool: string): void
  /** the turn is over: its answer, if there is one, is stored */
  over(folder: string): void
  /** something was said in the chat */
  said(jid: string): void
  /** what is shown of it in this chat, unless the agent uses a tool now */
  of(folder: string, jid: string): string | undefined
  all(): readonly LiveText[]
  stop(): void
}

type LiveGroup = Pick<Group, 'folder' | 'jid'>

interface LiveText {
  jid: string
  text: string
  /** what the agent uses now, as people call it; null: nothing */
  tool: string | null
}

/** From the unit `from` on, the live text of a chat is this; without text and tool it is over. */
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
  tool: string | null
  shownTool: string | null
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
      ...{ tool: null, shownTool: null, taken: 0, state: 'growing', changedAt: -everyMs, timer: undefined },
    }
    texts.set(folder, text)
    return text
  }
  const hide = (text: Growing) => {
    if (text.isSeen || text.shownTool !== null) show({ jid: text.jid, from: 0, text: '', tool: null })
    text.isSeen = false
    text.shown = 0
    text.shownTool = null
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
    const { jid, shown, tool } = text
    if (shown === text.text.length && tool === text.shownTool) return
    // What is shown of a text that was broken off stays until there are other words.
    if (text.text === '' && text.isSeen) return
    show({ jid, from: shown, text: text.text.slice(shown), tool })
    text.shown = text.text.length
    text.shownTool = tool
    text.isSeen ||= text.shown > 0
    text.changedAt = performance.now()
  }
  const ofTurn = (group: LiveGroup): Growing => {
    const known = texts.get(group.folder)
    return known && known.jid === group.jid && known.state !== 'lingering' ? known : begin(group)
  }
  const bringSoon = (folder: string, text: Growing) => {
    const ms = Math.max(0, text.changedAt + everyMs - performance.now())
    text.timer ??= setTimeout(() => bring(folder, text), ms).unref()
  }

  return {
    grow(group, piece) {
      const text = ofTurn(group)
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
      text.tool = null
      text.text = text.text === '' ? words.trimStart() : text.text + words
      bringSoon(group.folder, text)
    },
    uses(group, tool) {
      const text = ofTurn(group)
      if (text.state === 'growing') text.visible.breakOff()
      text.state = 'broken'
      text.tool = nameOfTool(tool) || null
      bringSoon(group.folder, text)
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
    of(folder, jid) {
      const text = texts.get(folder)
      if (text?.jid !== jid || text.shown === 0 || text.state === 'broken') return undefined
      return mayShow({ folder, jid }) ? text.text.slice(0, text.shown) : undefined
    },
    all: () =>
      [...texts.values()].flatMap(({ jid, text, shown, shownTool: tool }) =>
        shown === 0 && tool === null ? [] : [{ jid, text: text.slice(0, shown), tool }],
      ),
    stop() {
      for (const { timer } of texts.values()) clearTimeout(timer)
      texts.clear()
    },
  }
}
