import { z } from 'zod'
import { changedQuestion } from '../../../../host/src/chat/card-text.ts'
import { type ChatEntry, readHistory } from '../../../../host/src/chat/history.ts'
import type { HostWithChannel, TestedKind } from '../host.ts'
import type { Person, Platform, Shown } from '../platform.ts'

/** The web chat is in every host. */
export const webChat: TestedKind = { name: 'web', title: 'The web chat', settings: z.object({}) }

/** Whoever is let in is the operator, under a name of their own. */
const ann: Person = { id: 'operator', name: 'Ann' }

/** People at the console, who do what its routes do, and see what those show them. It is never away from its host. */
export async function openWeb(): Promise<Platform> {
  let host: Pick<HostWithChannel, 'store' | 'chats'> | undefined
  const here = () => {
    if (!host) throw new Error('no host is open')
    return host
  }
  const groupIn = (jid: string) =>
    here()
      .store.groups()
      .find(group => group.jid === jid)
  const entriesIn = (jid: string): ChatEntry[] => {
    const { store, chats } = here()
    return readHistory(store, { jid, folder: groupIn(jid)?.folder ?? '' }, 1000, chats.approvals).entries
  }
  const shownOf = ({ key, direction, text, question, attachments: [file] = [] }: ChatEntry): Shown => ({
    id: key,
    isOurs: direction === 'out',
    text: question ? changedQuestion(question) : text,
    buttons:
      question?.status === 'open'
        ? question.questions.flatMap(({ options = [] }) => options.map(({ label }) => label))
        : [],
    file: file && { name: file.name, bytes: file.bytes },
  })
  return {
    settings: {},
    direct: 'web:ann',
    room: 'web:room',
    ann,
    stranger: { ...ann, name: 'Mallory' },
    dropsRepeats: true,
    meet: given => {
      host = given
    },
    async say({ name }, jid, text, { mention, file } = {}) {
      const { files, web } = here().chats
      const group = groupIn(jid)
      const content = (async function* () {
        if (file) yield file.content
      })()
      const taken = file && group && (await files?.receive(group, file.name, content))
      const given = taken && group && (await files?.give(group, [taken.id]))
      const received = await web.post({
        jid,
        text: mention ? `@Hatch ${text}` : text,
        senderName: name,
        attachments: given?.attachments,
      })
      return received.ok ? `in:${received.id}` : ''
    },
    shown: async jid =>
      entriesIn(jid)
        .filter(({ direction, status }) => direction === 'in' || status === 'sent')
        .map(shownOf),
    async press({ name }, jid, id, label) {
      const card = entriesIn(jid).find(({ key }) => key === id)?.question
      const option = 1 + (card?.questions[0]?.options?.findIndex(one => one.label === label) ?? -1)
      await here().chats.web.choose({
        ...{ jid, id: card?.id ?? '', question: 1, answer: { option }, senderName: name },
      })
    },
    isTyping: jid => here().chats.web.typingIn().includes(jid),
    down: async () => {},
    up: async () => {},
    close: async () => {},
  }
}
