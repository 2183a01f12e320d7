import type { Group, OtherChat, Task } from '@hatchway/protocol'
import type { Taint } from '../base/taint.ts'
import {
  nameContext,
  resultContext,
  type Texts,
  taskContext,
  textKey,
  titleContext,
} from '../store/contexts.ts'
import type { GuardRules } from './guard.ts'

/**
 * What a group's agent is shown of tasks and groups. Text counts by what its writer had read, and is shown only to a
 * group that has read as much itself. The host cannot see a file being read: if lists with such text tainted whoever
 * has them, one group that reads strangers' words would taint the main group for ever. So the text is left out, and
 * `show_withheld` has it written, after which the group counts as having read it.
 */
export interface View {
  task(task: Task): Task
  group(group: Group): Group
  /** a chat that nobody has registered: strangers named it, and some platforms let them choose the address */
  chat(chat: OtherChat): OtherChat
  /** what the reader would have read, had nothing been left out so far */
  withheld(): Taint
}

const notice =
  '[withheld: whoever wrote this had read untrusted text or secrets. show_withheld has it shown to you, and you count as having read it]'
const clean: Taint = { corrupted: false, secret: false }

export function viewFor(reader: Taint, texts: Texts, rules: Pick<GuardRules, 'containsSecrets'>): View {
  const left = { ...clean }
  const isHidden = (folder: string, context: string, writers: readonly string[] = []): boolean => {
    const { corrupted, secret } = texts.get(textKey(folder, context)) ?? clean
    const more = {
      corrupted: corrupted && !reader.corrupted,
      secret: (secret || writers.some(rules.containsSecrets)) && !reader.secret,
    }
    left.corrupted ||= more.corrupted
    left.secret ||= more.secret
    return more.corrupted || more.secret
  }
  /** A chat's address is what somebody has typed, too. */
  const chatOf = ({ folder, jid }: { folder: string; jid: string }): string =>
    isHidden(folder, nameContext) ? `withheld:${folder}` : jid
  return {
    task(task) {
      const { group, id, created_by, jid } = task
      const chat = chatOf({ folder: group, jid })
      const hidesText = isHidden(group, taskContext(id), [group, created_by])
      const hidesResult = task.last_result !== null && isHidden(group, resultContext(id), [group])
      if (chat === jid && !hidesText && !hidesResult) return task
      return {
        ...task,
        jid: chat,
        ...(hidesText
          ? { prompt: notice, script: task.script && notice, model: task.model && 'withheld' }
          : {}),
        ...(hidesText && task.job ? { job: { ...task.job, name: 'withheld', command: notice } } : {}),
        ...(hidesResult ? { last_result: notice } : {}),
      }
    },
    chat(chat) {
      if (reader.corrupted) return chat
      left.corrupted = true
      return { ...chat, name: notice, jid: /^[a-z]+:-?[A-Z]?\d+$/.test(chat.jid) ? chat.jid : 'withheld' }
    },
    group(group) {
      const jid = chatOf(group)
      const { trigger, channel } = group
      if (jid === group.jid) return isHidden(group.folder, titleContext) ? { ...group, name: notice } : group
      return { ...group, jid, name: notice, trigger: trigger && 'withheld', channel: channel && 'withheld' }
    },
    withheld: () => left,
  }
}
