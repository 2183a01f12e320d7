import { layoutOf } from '../../../../host/src/base/layout.ts'
import { email } from '../../../../host/src/plugins/channels/email/kind.ts'
import { createLibrary } from '../../../../host/src/plugins/channels/library.ts'
import { until } from '../../until.ts'
import type { Person, Platform, Said, Shown } from '../platform.ts'
import { authserv, type MailServers, password } from './servers.ts'

/** The parts of the libraries that other people's mail programs are played with. */
interface Parser {
  default: { parse(raw: string | Uint8Array): Promise<Parsed> }
}
interface Parsed {
  headers: readonly { key: string; value: string }[]
  from?: { address?: string | undefined; name: string }
  to?: readonly { address?: string | undefined }[]
  subject?: string
  messageId?: string
  inReplyTo?: string
  references?: string
  text?: string
  html?: string
  attachments: readonly { filename: string | null; content: ArrayBuffer }[]
}
interface Sender {
  createTransport(options: object): {
    sendMail(mail: object): Promise<unknown>
    close(): void
  }
}

const library = createLibrary(layoutOf('/nowhere'), email)

/** Somebody else's mail server hands a mail in. */
export async function handIn(
  servers: MailServers,
  mail: { from: string; to: string; raw: string | Buffer; helo?: string; isUnchecked?: boolean },
): Promise<void> {
  const { createTransport } = await library<Sender>('nodemailer')
  const domain = mail.from.slice(mail.from.lastIndexOf('@') + 1)
  const transport = createTransport({
    host: '127.0.0.1',
    port: mail.isUnchecked ? servers.ports.unchecked : servers.ports.mx,
    name: mail.helo ?? `mx.${domain}`,
    ignoreTLS: true,
  })
  const envelope = { from: mail.from, to: mail.to }
  await transport.sendMail({ envelope, raw: mail.raw })
  transport.close()
}

let tests = 0

/** A mailbox for the assistant and people with addresses of their own, on servers that tests share. */
export async function openEmail(servers: MailServers) {
  const number = ++tests
  const own = `hatch${number}@agents.test`
  const ann: Person = { id: `ann${number}@example.test`, name: 'Ann Ö.' }
  const bob: Person = { id: `bob${number}@example.test`, name: 'Bob' }
  const stranger: Person = { id: `mallory${number}@evil.test`, name: 'Mallory' }
  const direct = `email:${ann.id}`
  const room = `email:${[ann, bob, stranger]
    .map(({ id }) => id)
    .sort()
    .join(',')}`
  const said: { by: Person; raw: string }[] = []
  const peopleIn = (jid: string) => jid.replace('email:', '').split(',')

  const headersOf = (by: Person, jid: string, id: string, { mention, replyTo, thread }: Said) => {
    const others = peopleIn(jid).filter(one => one !== by.id)
    // Whoever is only to read along is in Cc.
    const [to, cc] = others.length === 0 ? [[own], []] : mention ? [[own, ...others], []] : [others, [own]]
    const root = thread === undefined || thread === 'new' ? undefined : thread
    return [
      `From: =?utf-8?B?${Buffer.from(by.name).toString('base64')}?= <${by.id}>`,
      `To: ${to.join(', ')}`,
      ...(cc.length > 0 ? [`Cc: ${cc.join(', ')}`] : []),
      `Message-ID: ${id}`,
      `Date: ${new Date().toUTCString()}`,
      ...(replyTo === undefined ? [] : [`In-Reply-To: ${replyTo}`, `References: ${replyTo}`]),
      ...(root === undefined ? [] : [`References: ${root}`]),
      'MIME-Version: 1.0',
    ]
  }
  const bodyOf = (text: string, file: Said['file']) => {
    const words = ['Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: base64']
    const part = [...words, '', Buffer.from(text).toString('base64')]
    if (!file) return part
    return [
      'Content-Type: multipart/mixed; boundary=xxx',
      '',
      '--xxx',
      ...part,
      '--xxx',
      `Content-Type: application/octet-stream; name="${file.name}"`,
      `Content-Disposition: attachment; filename="${file.name}"`,
      'Content-Transfer-Encoding: base64',
      '',
      ...(file.content.toString('base64').match(/.{1,76}/g) ?? []),
      '--xxx--',
    ]
  }

  let delivering = Promise.resolve()
  /** Resolves when it is in the mailbox, as the next one there. */
  const deliver = (mail: Parameters<typeof handIn>[1]) => {
    const turn = delivering.then(async () => {
      const before = servers.count(own)
      await handIn(servers, mail)
      await until(() => servers.count(own) > before)
    })
    delivering = turn.catch(() => {})
    return turn
  }
  const parsed = async (address: string): Promise<Parsed[]> => {
    const { default: parser } = await library<Parser>('postal-mime')
    const mails = await Promise.all(
      servers.mails(address).map(raw => parser.parse(Buffer.from(raw, 'latin1'))),
    )
    const arrival = (mail: Parsed) => Number(mail.headers.find(({ key }) => key === 'x-arrival')?.value)
    // A server that is ended while it delivers a mail delivers it again.
    const once = new Map(mails.map(mail => [arrival(mail), mail]))
    return [...once.values()].toSorted((a, b) => arrival(a) - arrival(b))
  }
  const shownOf = (mail: Parsed): Shown => {
    const [file] = mail.attachments
    return {
      id: mail.messageId ?? '',
      isOurs: true,
      text: (mail.text ?? '').trim(),
      thread: mail.references?.split(/\s+/)[0] ?? mail.messageId,
      replyTo: mail.inReplyTo,
      file: file && { name: file.filename ?? '', bytes: file.content.byteLength },
    }
  }
  const isIn = (jid: string) => (mail: Parsed) => {
    const to = (mail.to ?? []).map(({ address }) => address ?? '').sort()
    return mail.from?.address === own && to.join(',') === peopleIn(jid).join(',')
  }
  await servers.up()
  servers.refuse()

  const platform = {
    settings: {
      address: own,
      password,
      imap: `imaps://localhost:${servers.ports.imaps}`,
      smtp: `smtps://localhost:${servers.ports.submissions}`,
      authserv,
      tls: 'required',
      ca: servers.certificate,
    },
    direct,
    room,
    ann,
    stranger,
    async say(by, jid, text, more = {}) {
      const id = `<said-${number}-${said.length}@${by.id.replace(/.*@/, '')}>`
      const raw = [...headersOf(by, jid, id, more), ...bodyOf(text, more.file), ''].join('\r\n')
      said.push({ by, raw })
      await deliver({ from: by.id, to: own, raw })
      return id
    },
    shown: async jid => {
      const [reader = ''] = peopleIn(jid)
      await until(servers.isDelivered)
      return (await parsed(reader)).filter(isIn(jid)).map(shownOf)
    },
    isDownForAll: true,
    async another(count) {
      const person = { id: `person${count}-${number}@example.test`, name: `Person ${count}` }
      return { person, jid: `email:${person.id}` }
    },
    down: servers.down,
    up: servers.up,
    close: servers.up,
    refuse: (times, how) =>
      servers.refuse(
        ...Array.from({ length: times }, () =>
          how === 'limit' ? '450 4.7.1 Too many mails for now' : '451 4.3.0 Something is broken',
        ),
      ),
    async repeat() {
      for (const { by, raw } of [...said]) await deliver({ from: by.id, to: own, raw })
    },

    /** the first is an hour on its way */
    async swap(by, jid, [first, second]) {
      await platform.say(by, jid, second)
      const date = new Date(Date.now() - 3_600_000).toUTCString()
      const id = `<late-${number}@${by.id.replace(/.*@/, '')}>`
      const headers = [`From: ${by.id}`, `To: ${own}`, `Message-ID: ${id}`, `Date: ${date}`]
      await platform.post(by, [...headers, '', first])
    },
    async forge(text) {
      const to = [own, ...peopleIn(room).filter(one => one !== ann.id)].join(', ')
      await platform.post(stranger, [`From: ${ann.name} <${ann.id}>`, `To: ${to}`, '', text])
    },

    // What is special to mail.
    own,
    bob,
    /** somebody sends this, headers and all, from a server that may send for their domain */
    post: (
      by: Person,
      lines: readonly string[],
      more: { helo?: string; isUnchecked?: boolean; envelope?: string } = {},
    ) => deliver({ ...more, from: more.envelope ?? by.id, to: own, raw: [...lines, ''].join('\r\n') }),
    /** all of what somebody got */
    received: parsed,
  } satisfies Platform & Record<string, unknown>
  return platform
}
