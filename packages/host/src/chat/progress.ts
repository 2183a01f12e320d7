import type { Group } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { Positions } from '../store/positions.ts'
import { hostMessage } from '../store/text-message.ts'
import type { MessageRow, NewMessage, Store } from '../store/types.ts'
import type { Channel } from './channels/types.ts'
import { nameOfTool } from './tool-name.ts'

/**
 * Shows on a platform that an agent is at work. After a while the chat gets a message that changes with the agent's
 * steps and then with what the agent is writing, and the answer takes its place. Only platforms whose messages can be
 * changed have it. What the agent is writing is not stored with it: a change is delivered with whatever it is by then.
 *
 * The store knows which message is open: one that no other `replaces`. So the answer finds it after a restart, too.
 */
export interface Progress {
  /** the group's agent works; `tool` is what it uses now */
  working(group: Pick<Group, 'folder' | 'jid'>, tool?: string): void
  /** the group's agent does not work; `isDone`: its turn is over */
  over(folder: string, isDone: boolean): void
  /** what an agent says, in the place of the open message if there is one */
  replacing(message: NewMessage): NewMessage
  stop(): void
}

/** platforms limit how often a message may be changed: after so many changes it is changed less often */
const changeMs = 3000
const changesAtFirst = 10

interface Work {
  jid: string
  tool: string | undefined
  /** as the chat shows it; undefined: it shows nothing yet */
  shown: string | undefined
  changes: number
  timer: NodeJS.Timeout | undefined
}

export interface ProgressOptions {
  store: Pick<Store, 'openProgress' | 'transaction'>
  positions: Positions
  channelOf(jid: string): Channel | undefined
  /** what the group's agent is writing, if its answer goes to this thread of this chat */
  liveText(folder: string, place: Pick<MessageRow, 'jid' | 'thread'>): string | undefined
  /** how long an agent works before the chat shows it; 0: never */
  afterMs: number
  /** there is something to deliver */
  said(): void
  log: Logger
  now(): number
}

export function createProgress(options: ProgressOptions): Progress {
  const { store, positions, afterMs, log, now } = options
  const works = new Map<string, Work>()

  const put = (message: NewMessage) => {
    store.transaction(transaction => transaction.insertMessage(message))
    options.said()
  }
  const show = (folder: string, work: Work) => {
    const text = textOf(work.tool)
    try {
      const last = store.openProgress(folder)
      const open = last?.jid === work.jid ? last : undefined
      const words = open && options.liveText(folder, open)
      // What does not fit into one message changes nothing any more.
      const shown = words?.slice(0, options.channelOf(work.jid)?.messageLimit) ?? text
      if (shown === work.shown) return
      const message = hostMessage(positions.next(), { folder, jid: work.jid }, text, now())
      put(open ? { ...message, kind: 'edit', messageId: String(open.id) } : { ...message, kind: 'progress' })
      work.shown = shown
      work.changes++
    } catch (error) {
      // It is a courtesy; the answer is not lost with it.
      log.warn({ err: error, group: folder }, 'progress could not be shown')
    }
  }
  const watch = (folder: string, work: Work, ms: number) => {
    clearTimeout(work.timer)
    work.timer = setTimeout(() => {
      show(folder, work)
      watch(folder, work, changeMs * (1 + Math.floor(work.changes / changesAtFirst)))
    }, ms).unref()
  }

  return {
    working({ folder, jid }, tool) {
      const channel = options.channelOf(jid)
      if (afterMs === 0 || !channel?.edit) return
      const work = works.get(folder)
      if (work?.jid === jid) {
        work.tool = tool ?? work.tool
        return
      }
      clearTimeout(work?.timer)
      const begun: Work = { jid, tool, shown: undefined, changes: 0, timer: undefined }
      works.set(folder, begun)
      watch(folder, begun, afterMs)
    },
    over(folder, isDone) {
      const work = works.get(folder)
      clearTimeout(work?.timer)
      works.delete(folder)
      const open = isDone && work?.shown !== undefined ? store.openProgress(folder) : undefined
      // The agent had nothing to say.
      if (open)
        put({
          ...hostMessage(positions.next(), { folder, jid: open.jid }, 'Done.', now()),
          kind: 'edit',
          messageId: String(open.id),
          replaces: open.id,
        })
    },
    replacing(message) {
      const open = store.openProgress(message.group)
      return open?.jid === message.jid ? { ...message, replaces: open.id } : message
    },
    stop() {
      for (const { timer } of works.values()) clearTimeout(timer)
      works.clear()
    },
  }
}

function textOf(tool = ''): string {
  const name = nameOfTool(tool)
  return name === '' ? 'Working… (/stop ends it)' : `Working: ${name}… (/stop ends it)`
}
