import { join } from 'node:path'
import { createNames, post } from '@hatchway/spool'
import { pino } from 'pino'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { channelContract } from '../../../../../testing/src/channels/contract.ts'
import { openEmail } from '../../../../../testing/src/channels/email/platform.ts'
import {
  type MailServers,
  missingForMail,
  password,
  startMail,
} from '../../../../../testing/src/channels/email/servers.ts'
import { type GroupInChat, openHost } from '../../../../../testing/src/channels/host.ts'
import { openLive } from '../../../../../testing/src/daemon/in-process.ts'
import { until } from '../../../../../testing/src/until.ts'
import { layoutOf } from '../../../base/layout.ts'
import { hostWith } from '../../../chat/channels/testing.ts'
import type { Incoming, Outgoing } from '../../../chat/channels/types.ts'
import { createLibrary } from '../library.ts'
import { check, open } from './channel.ts'
import { email } from './kind.ts'
import { emailSettings } from './settings.ts'

let started: Promise<MailServers> | undefined
const servers = () => {
  started ??= startMail()
  return started
}
afterAll(async () => (await started)?.close())

const missing = missingForMail()
const attempt = missing === undefined || process.env.CI === 'true' ? test : test.skip
const needs = missing === undefined ? '' : ` (needs ${missing})`

channelContract({ kind: email, open: async () => openEmail(await servers()), missing })

const optionsFor = (settings: Record<string, unknown>) => ({
  settings: emailSettings.parse(settings),
  library: createLibrary(layoutOf('/nowhere'), email),
  readFile: async () => undefined,
  folder: () => '/nowhere',
  assistant: 'Hatch',
  log: pino({ level: 'silent' }),
  now: Date.now,
})

/** The servers, and a host with the channel whose chats have groups. */
async function begin(more: { groups?: readonly GroupInChat[] } = {}) {
  const platform = await openEmail(await servers())
  const { direct, room, ann, settings } = platform
  const groups = [
    { folder: 'main', jid: direct, main: true },
    { folder: 'room', jid: room, requires_trigger: true },
    ...(more.groups ?? []),
  ]
  const host = await openHost({ kind: email, settings, groups })
  onTestFinished(host.stop)
  await until(() => host.channel.status?.().isConnected === true)
  const sent = async (id: number) => {
    await until(() => host.message(id)?.status !== 'pending')
    return host.message(id)
  }
  /** the mail in which Ann got this */
  const got = async (text: string) => {
    const find = async () =>
      (await platform.received(ann.id)).find(mail => mail.text?.includes(text) || mail.html?.includes(text))
    await until(async () => (await find()) !== undefined)
    const found = await find()
    const header = (name: string) => found?.headers.find(({ key }) => key === name)?.value
    return { ...found, header }
  }
  const texts = (jid = direct) => host.heard(jid).map(({ text }) => text)
  /** a mail of Ann's with these headers; `From` and `To` are there already */
  const write = (headers: readonly string[], body: string | readonly string[] = 'hello') =>
    platform.post(ann, [`From: ${ann.id}`, `To: ${platform.own}`, ...headers, '', ...[body].flat()])
  /** what comes before this has been looked at once it is heard */
  const heardAfter = async (marker: string) => {
    await platform.say(ann, direct, marker)
    await until(() => texts().includes(marker))
  }
  return { platform, host, sent, got, texts, write, heardAfter, direct, room, ann }
}

/** The channel alone, with a host that the test plays. */
async function alone(
  given: Parameters<typeof hostWith>[0],
  more: { servers?: MailServers; settings?: Record<string, unknown> } = {},
) {
  const platform = await openEmail(more.servers ?? (await servers()))
  const memory = new Map<string, string>()
  const host = hostWith({
    recall: key => memory.get(key),
    remember: (key, value) => void (value === undefined ? memory.delete(key) : memory.set(key, value)),
    ...given,
  })
  const channel = open(optionsFor({ ...platform.settings, ...more.settings }))
  onTestFinished(async () => channel.disconnect?.())
  await channel.connect?.(host)
  await until(() => channel.status?.().isConnected === true)
  return { platform, channel, memory }
}

const multipart = (type: string, ...parts: readonly (readonly string[])[]) => [
  [`Content-Type: multipart/${type}; boundary=b`, 'MIME-Version: 1.0'],
  [...parts.flatMap(part => ['--b', ...part]), '--b--'],
]

describe(`What people write by e-mail${needs}`, () => {
  attempt('moves the cursor only after it is stored', async () => {
    const stored = Promise.withResolvers<void>()
    const heard: Incoming[] = []
    const { platform, memory } = await alone({
      receive: async message => {
        heard.push(message)
        await stored.promise
        return { ok: true, id: 1, status: 'waiting' }
      },
    })
    const before = memory.get('cursor')
    await platform.say(platform.ann, platform.direct, 'keep this')
    await until(() => heard.length === 1)
    expect(memory.get('cursor')).toBe(before)
    stored.resolve()
    await until(() => memory.get('cursor') !== before)
  })

  attempt('comes again until the host could store it', async () => {
    let attempts = 0
    const { platform, channel } = await alone({
      receive: async () => {
        if (++attempts < 3) throw new Error('the disk is full')
        return { ok: true, id: 1, status: 'waiting' }
      },
    })
    await platform.say(platform.ann, platform.direct, 'keep this')
    await until(() => attempts === 1 && channel.status?.().isConnected === false)
    expect(channel.status?.().lastError).toBe('the disk is full')
    await until(() => attempts === 3)
  })

  attempt(
    'is not taken twice where the server numbers the mailbox anew, and what is new is found',
    async () => {
      const { platform, host, texts, direct, ann } = await begin()
      await platform.say(ann, direct, 'first')
      await platform.say(ann, direct, 'second')
      await until(() => texts().length === 2)
      const cursor = host.store.chats.recall('email', 'cursor')
      await (await servers()).renumber(platform.own)
      await platform.say(ann, direct, 'third')
      await until(() => texts().length === 3)
      expect(texts()).toEqual(['first', 'second', 'third'])
      const validity = (text: string | undefined) => JSON.parse(text ?? '').validity
      expect(validity(host.store.chats.recall('email', 'cursor'))).not.toBe(validity(cursor))
    },
  )

  attempt('is found by looking where the server does not tell; mail from before is not heard', async () => {
    const without = await startMail({ dovecot: 'imap_capability = IMAP4rev1 SASL-IR LITERAL+ UIDPLUS' })
    onTestFinished(without.close)
    const heard: string[] = []
    const platform = await openEmail(without)
    await platform.say(platform.ann, platform.direct, 'from before')
    const channel = open(optionsFor({ ...platform.settings, poll: 1 }))
    onTestFinished(async () => channel.disconnect?.())
    const receive = async ({ text }: Incoming) => {
      heard.push(text)
      return { ok: true, id: 1, status: 'waiting' } as const
    }
    await channel.connect?.(hostWith({ receive }))
    await until(() => channel.status?.().isConnected === true)
    await platform.say(platform.ann, platform.direct, 'now')
    await until(() => heard.length > 0)
    expect(heard).toEqual(['now'])
  })

  attempt('is the words alone: without what is answered, without HTML, in any character set', async () => {
    const { write, host, texts, heardAfter, direct } = await begin()
    await write(
      ['Message-ID: <1@example.test>', 'In-Reply-To: <0@agents.test>', 'Subject: Re: tea'],
      ['yes', '', 'On Tue, 17 Nov 2026 at 10:15, Hatch wrote:', '> Tea?'],
    )
    await write(['Subject: =?iso-8859-1?Q?Gr=FC=DFe?='], 'hello')
    await write(['Subject: only this'], '')
    await write(['Content-Type: text/html; charset=utf-8'], '<p>a &amp; b</p><script>no()</script><p>c</p>')
    const koi = Buffer.from([0xf0, 0xd2, 0xc9, 0xd7, 0xc5, 0xd4]).toString('base64')
    await write(['Content-Type: text/plain; charset=koi8-r', 'Content-Transfer-Encoding: base64'], koi)
    await write(['Content-Type: text/plain; charset=no-such-set'], 'plain')
    await heardAfter('last')
    expect(texts()).toEqual([
      'yes',
      'Subject: Grüße\n\nhello',
      'only this',
      'a & b\n\nc',
      'Привет',
      'plain',
      'last',
    ])
    // Nobody vouches for what a mail quotes, unless we have said or heard it.
    expect(host.heard(direct)[0]?.quote).toEqual({ id: '<0@agents.test>' })
    expect(host.heard(direct)[0]?.thread).toBe('<0@agents.test>')
  })

  attempt('may be odd, large or nested without end: it is heard, or the reason why not', async () => {
    const { write, host, texts, heardAfter, direct } = await begin()
    const deep = Array.from({ length: 300 }, (_, i) => [
      `--b${i}`,
      `Content-Type: multipart/mixed; boundary=b${i + 1}`,
      '',
    ]).flat()
    await write(['Content-Type: multipart/mixed; boundary=b0', 'Subject: deep'], deep)
    const [headers = [], body = []] = multipart(
      'mixed',
      ['Content-Type: text/plain', '', 'with files'],
      ...Array.from({ length: 22 }, (_, i) => [
        'Content-Type: application/pdf',
        ...(i === 0 ? ['Content-Disposition: attachment; filename="../../etc/passwd"'] : []),
        '',
        'x'.repeat(900),
      ]),
      ['Content-Type: application/octet-stream', '', ...Array.from({ length: 300 }, () => 'y'.repeat(900))],
    )
    await write(headers, body)
    await write(
      [],
      Array.from({ length: 120 }, () => 'z'.repeat(900)),
    )
    await write([`X-Long: ${'a '.repeat(70_000)}`.replaceAll(/(.{900})/g, '$1\r\n ')], 'headers without end')
    await heardAfter('last')
    const [unread, files, long] = host.heard(direct)
    expect(texts()).toHaveLength(4)
    expect(unread?.text).toMatch(/^deep\n\[This mail cannot be read: .*nesting/)
    expect(files?.text).toBe('with files\n[3 more files were not taken: 20 of one mail are.]')
    expect(files?.attachments).toHaveLength(20)
    expect(files?.attachments?.[0]?.name).not.toContain('/')
    expect(files?.attachments?.[1]?.name).toBe('file-2.pdf')
    expect(long?.text).toMatch(/more characters of this mail were left out\.\]$/)
    expect(long?.text.length).toBeLessThan(100_000)
  })

  attempt('is in the chat of those who read it; whoever is added begins another', async () => {
    const { platform, host, texts, heardAfter, direct, ann } = await begin({
      groups: [{ folder: 'pair', jid: 'email:ann@example.test,carl@example.test' }],
    })
    const { own } = platform
    const from = { id: 'ann@example.test', name: 'Ann' }
    const lines = (to: string, cc = '') => [`From: Ann@Example.TEST`, `To: ${to}`, `Cc: ${cc}`, '', 'to two']
    await platform.post(from, lines(`CARL@example.test, ${own}`))
    await platform.post(from, lines(own, `carl@example.test, eve@evil.test`))
    await platform.post(ann, [`From: ${ann.id}`, 'To: carl@example.test', '', 'a blind copy'])
    await platform.post(ann, [`From: ${ann.id}`, `To: ${own.replace('@', '+tag@')}`, '', 'with a tag'])
    const many = Array.from({ length: 40 }, (_, i) => `person${i}@example.test`).join(',\r\n ')
    await platform.post(ann, [`From: ${ann.id}`, `To: ${own}, ${many}`, '', 'to many'])
    await heardAfter('last')
    expect(host.heard('email:ann@example.test,carl@example.test')).toMatchObject([
      { sender: 'ann@example.test', text: 'to two', status: 'waiting' },
    ])
    expect(host.store.chats.known('email:ann@example.test,carl@example.test,eve@evil.test')?.isGroup).toBe(
      true,
    )
    expect(texts(direct)).toEqual(['a blind copy', 'with a tag', 'last'])
    // Only who wrote is told that the operator has been asked.
    await until(async () => (await platform.received(from.id)).length === 1)
    expect(await platform.received('eve@evil.test')).toEqual([])
  })
})

describe(`Mail that nobody is to hear${needs}`, () => {
  attempt('is by programs, lists, bounces and ourselves', async () => {
    const { platform, host, write, texts, heardAfter, ann } = await begin()
    const { own } = platform
    await write(['Auto-Submitted: auto-replied'])
    await write(['Auto-Submitted: auto-generated; owner-email="x@example.test"'])
    await write(['Precedence: bulk'])
    await write(['List-Id: <news.example.test>'])
    await write(['Content-Type: multipart/report; report-type=delivery-status; boundary=b'])
    // Dovecot adds no Return-Path for those who have no address.
    const bounce = ['Return-Path: <>', `From: ${ann.id}`, `To: ${own}`, '', 'a bounce']
    await platform.post(ann, bounce, { envelope: '', helo: 'mx.example.test' })
    const ourselves = { id: own, name: 'Hatch' }
    await platform.post(ourselves, [`From: ${own}`, `To: ${own}`, '', 'our own'])
    await write(['Auto-Submitted: no'], 'by hand')
    await heardAfter('last')
    expect(texts()).toEqual(['by hand', 'last'])
    expect(host.channel.status?.().lastError).toBeUndefined()
  })
})

describe(`Who a mail is from${needs}`, () => {
  attempt('is what our own server says, and nothing in the mail', async () => {
    const { platform, host, texts, heardAfter, ann, direct } = await begin()
    const { own, stranger } = platform
    const mail = (...headers: readonly string[]) => [
      `From: ${ann.id}`,
      `To: ${own}`,
      ...headers,
      '',
      'forged',
    ]
    const lastError = () => host.channel.status?.().lastError
    // Another server than those of her domain sends it, with and without a verdict of its own making.
    const helo = 'mx.evil.test'
    await platform.post(ann, mail(), { helo })
    await until(() => lastError()?.includes('does not vouch for') === true)
    expect(lastError()).toContain(`A mail from ${ann.id} was refused: mx.agents.test`)
    const verdict = `Authentication-Results: mx.agents.test; dmarc=pass header.from=example.test`
    await platform.post(ann, mail(verdict, verdict), { helo })
    // The check is passed for the envelope, and the mail says somebody else.
    await platform.post(stranger, mail(verdict))
    await platform.post(stranger, [`From: ${ann.id}, ${stranger.id}`, `To: ${own}`, '', 'forged'])
    await platform.post(stranger, [`From: ${stranger.id}`, ...mail()])
    await platform.post(stranger, [`From: "${ann.id}" <${stranger.id}>`, `To: ${own}`, '', 'another chat'])
    await heardAfter('in between')
    // The server has checked nothing, or has another name.
    await platform.post(ann, mail(), { isUnchecked: true })
    await until(() => lastError()?.includes('no Authentication-Results header') === true)
    await platform.post(ann, mail('Authentication-Results: mx.other.test; spf=pass'), { isUnchecked: true })
    await until(() => lastError()?.includes('is by "mx.other.test"') === true)
    await heardAfter('last')
    expect(texts(direct)).toEqual(['in between', 'last'])
    expect(host.store.chats.pairings()).toMatchObject([{ sender: stranger.id, senderName: stranger.id }])
  })

  attempt('is known of those who have signed in to our own server, by their own address only', async () => {
    const bob = 'bob@agents.test'
    const { platform, host, heardAfter } = await begin({ groups: [{ folder: 'bob', jid: `email:${bob}` }] })
    const { ports } = await servers()
    const { createTransport } = await optionsFor(platform.settings).library<typeof import('nodemailer')>(
      'nodemailer',
    )
    const program = createTransport({
      host: '127.0.0.1',
      port: ports.submission,
      requireTLS: true,
      tls: { rejectUnauthorized: false },
      auth: { user: bob, pass: password },
    })
    const write = (from: string, text: string) =>
      program.sendMail({ envelope: { from: bob, to: platform.own }, from, to: platform.own, text })
    await write('boss@agents.test', 'I am the boss')
    await write(bob, 'hello')
    await until(() => host.heard(`email:${bob}`).length === 1)
    await heardAfter('last')
    expect(host.heard(`email:${bob}`).map(({ text }) => text)).toEqual(['hello'])
    expect(host.store.chats.known('email:boss@agents.test')).toBeUndefined()
  })
})

describe(`What agents write by e-mail${needs}`, () => {
  attempt('goes into the thread that it answers, with its subject', async () => {
    const { host, sent, got, write, texts, direct } = await begin()
    await write(['Message-ID: <a@example.test>', 'Subject: Garden'])
    await write(['Message-ID: <b@example.test>', 'Subject: Re: Garden', 'References: <a@example.test>'])
    await until(() => texts().length === 2)
    const thread = '<a@example.test>'
    await sent(host.tell(direct, 'in the thread', { thread }))
    const mail = await got('in the thread')
    expect(mail.subject).toBe('Re: Garden')
    expect(mail.inReplyTo).toBe('<b@example.test>')
    expect(mail.references).toBe('<a@example.test> <b@example.test>')
    expect(mail.header('auto-submitted')).toBe('auto-replied')
    await sent(host.tell(direct, 'to the first', { thread, replyTo: '<a@example.test>' }))
    expect((await got('to the first')).inReplyTo).toBe('<a@example.test>')
    // One that nobody remembers, or that is somebody else's.
    await sent(host.tell(direct, 'long ago', { thread: '<z@example.test>' }))
    expect(await got('long ago')).toMatchObject({ inReplyTo: '<z@example.test>', subject: 'Hatch' })
  })

  attempt('begins a thread of its own otherwise, and looks like a mail', async () => {
    const { host, sent, got, direct } = await begin()
    const id = host.tell(direct, '**Good** morning\n\n1 < 2 [here](https://example.org)', {
      sender: 'Writer',
    })
    const row = await sent(id)
    const mail = await got('1 < 2')
    expect(mail).toMatchObject({ subject: 'Good morning', from: { name: 'Writer (Hatch)' } })
    expect(mail.text?.trim()).toBe('Good morning\n\n1 < 2 here (https://example.org)')
    expect(mail.html).toContain('<b>Good</b> morning<br><br>1 &lt; 2 <a href="https://example.org">here</a>')
    expect(mail.header('auto-submitted')).toBe('auto-generated')
    expect(mail.inReplyTo).toBeUndefined()
    expect(row?.externalIds).toEqual([mail.messageId])
    expect(mail.messageId).toMatch(new RegExp(`^<hw${id}-1\\.[0-9a-f]{10}@agents\\.test>$`))
  })

  attempt('cannot add a header, a person or another sender', async () => {
    const { platform, host, sent, got, write, texts, direct } = await begin()
    await write(['Message-ID: <h@example.test>', 'Subject: =?utf-8?Q?hi=0D=0ABcc:_eve@evil.test?='], 'hello')
    await until(() => texts().length === 1)
    const evil = 'x\r\nBcc: eve@evil.test\r\nX-Evil: 1\r\n\r\nhm'
    await sent(host.tell(direct, `${evil} one`, { sender: `Ann <ann@example.test>\r\nX-Evil: 1` }))
    await sent(host.tell(direct, 'in a thread', { thread: '<h@example.test>', replyTo: `<a>${evil}` }))
    await sent(host.tell(direct, 'no thread', { thread: `<a b>${evil}` }))
    const attachments = [{ id: 'gone', name: evil, type: 'text/plain', bytes: 1 }]
    await sent(host.tell(direct, 'a file', { attachments }))
    for (const text of ['one', 'in a thread', 'no thread', 'a file']) {
      const mail = await got(text)
      expect(mail.header('x-evil')).toBeUndefined()
      expect(mail.header('bcc')).toBeUndefined()
      expect(mail.from?.address).toBe(platform.own)
      expect(mail.to).toHaveLength(1)
    }
    expect((await got('one')).from?.name).toBe('Ann ann example.test X-Evil 1 (Hatch)')
    expect(await platform.received('eve@evil.test')).toEqual([])
  })

  attempt('has the same Message-ID however often it is sent', async () => {
    const { platform, channel } = await alone({})
    const message = {
      ...{
        id: 7,
        group: 'main',
        jid: platform.direct,
        author: 'agent',
        kind: 'text',
        text: 'once',
        sender: null,
        speech: null,
      },
      ...{ messageId: null, createdAt: 0, status: 'pending', attempts: 0, nextAttemptAt: 0, partsSent: 0 },
      ...{ partsTotal: 0, error: null, sentAt: null },
    } satisfies Outgoing
    const part = { number: 1, of: 2, key: 'hw7-1' }
    const first = await channel.send(message, part)
    expect(await channel.send(message, part)).toBe(first)
    await channel.send({ ...message, text: 'twice' }, { number: 2, of: 2, key: 'hw7-2' })
    await until(async () => (await platform.received(platform.ann.id)).length === 3)
    const mails = await platform.received(platform.ann.id)
    expect(mails.map(({ messageId }) => messageId === first)).toEqual([true, true, false])
    // The second part stands below the first.
    expect(mails[2]).toMatchObject({ inReplyTo: first, subject: 'Part 2 of 2' })
  })

  attempt(
    'fails at once where the server refuses it for good, and is tried again where it does not',
    async () => {
      const { platform, host, sent, ann, direct } = await begin()
      expect(await sent(host.tell('email:nobody@nowhere.test', 'hello?'))).toMatchObject({
        status: 'failed',
        attempts: 1,
        error: expect.stringContaining('550'),
      })
      expect(await sent(host.tell(direct, '👍', { kind: 'reaction' }))).toMatchObject({
        status: 'failed',
        error: 'There are no reactions in e-mail. Answer in words.',
      })
      // Of several people, those who can be reached are, once.
      const some = `email:${ann.id},nobody@nowhere.test`
      expect(await sent(host.tell(some, 'to both'))).toMatchObject({ status: 'sent' })
      await until(() => host.channel.status?.().lastError?.includes('nobody@nowhere.test') === true)
      ;(await servers()).refuse('421 4.3.2 come back later')
      expect(await sent(host.tell(direct, 'patience'))).toMatchObject({ status: 'sent', attempts: 2 })
      expect((await platform.shown(direct)).map(({ text }) => text)).toEqual(['patience'])
    },
  )

  attempt('asks for approval to the letter, and hears the answer of those who may', async () => {
    const platform = await openEmail(await servers())
    const { direct, room, ann, bob } = platform
    const live = await openLive({ agents: { enabled: 'no' }, groups: { main: { approvers: [ann.id] } } })
    onTestFinished(() => live.close())
    const { host } = live
    await host.addGroup({ folder: 'main', jid: direct, name: 'main', main: true, dialect: 'hatchway' })
    await host.addGroup({ folder: 'room', jid: room, name: 'room', main: false, dialect: 'hatchway' })
    await live.start()
    await host.startAgents()
    const detach = await host.chats?.channels.attach(open(optionsFor(platform.settings)))
    onTestFinished(async () => detach?.())
    host.store.transaction(transaction =>
      transaction.addTaint('main', 'session', { corrupted: true, secret: true }, 'a test', Date.now()),
    )
    const payload = { jid: room, text: '*secret* plan' }
    post(
      join(live.layout.ipc, 'main', 'tasks'),
      JSON.stringify({ version: 1, id: 'r-1', type: 'send_message', payload }),
      { name: createNames()() },
    )
    await until(async () => (await platform.shown(direct)).length === 1)
    const [card] = await platform.shown(direct)
    expect(card?.text).toContain('*secret* plan')
    expect((await platform.received(ann.id))[0]?.html).toBeUndefined()
    const [, code = ''] = /^allow ([\w-]+)/m.exec(card?.text ?? '') ?? []
    const status = () => host.store.approvals.list({ limit: 1 })[0]?.status
    await platform.say(bob, room, `allow ${code}`, { mention: true })
    // As a mail program answers: above what it answers.
    const quoted = (card?.text ?? '').replaceAll(/^/gm, '> ')
    const answer = `allow ${code}\n\nOn Tue, 17 Nov 2026 at 10:15, Hatch wrote:\n${quoted}`
    await platform.say(ann, direct, answer, { replyTo: card?.id ?? '' })
    await until(() => status() !== 'open')
    expect(status()).toBe('allowed')
    expect(host.store.approvals.list({ limit: 1 })[0]?.decidedBy).toContain('Ann')
    await until(async () => (await platform.shown(room)).length > 0)
  })
})

describe(`What goes wrong with e-mail${needs}`, () => {
  attempt('is said without the password, and with what to do', async () => {
    const platform = await openEmail(await servers())
    const { ports } = await servers()
    const { ca: _, tls: __, ...local } = platform.settings
    const problem = (settings: Record<string, unknown>) =>
      check(optionsFor({ ...platform.settings, ...settings })).catch(String)
    const secret = 'not-the-password'
    const wrong = await problem({ password: secret })
    expect(wrong).toContain('does not accept this user and password')
    expect(wrong).not.toContain(secret)
    expect(await problem({ ca: undefined })).toContain('is not trusted')
    expect(await problem({ folder: 'Nowhere' })).toContain('There is no folder Nowhere')
    expect(await problem({ smtp: `smtp://localhost:${ports.mx}` })).toContain('offers no encryption')
    expect(await problem({ imap: 'imaps://localhost:1' })).toContain('localhost:1 cannot be reached')
    expect(await problem({ smtp: 'smtps://localhost:1' })).toContain('localhost:1 cannot be reached')
    // STARTTLS with a certificate that is trusted, any certificate, and none on this machine.
    const plain = { imap: `imap://localhost:${ports.imap}`, smtp: `smtp://localhost:${ports.submission}` }
    for (const settings of [platform.settings, { ...local, tls: 'unverified' }, local])
      expect(await check(optionsFor({ ...settings, ...plain }))).toContain(`${platform.own}, reading INBOX`)
    await platform.say(platform.ann, platform.direct, 'hello')
    expect(await problem({ authserv: 'mx.example.org' })).toContain(
      'but by mx.agents.test: is authserv right?',
    )
  })
})

test('settings say what is wrong with them, and know the usual ports', () => {
  const given = {
    address: 'A@Example.org',
    password: 'x',
    imap: 'mail.example.org',
    smtp: 'mail.example.org:587',
  }
  expect(emailSettings.parse({ ...given, authserv: 'mx.example.org' })).toMatchObject({
    address: 'a@example.org',
    imap: { host: 'mail.example.org', port: 993, isEncrypted: true },
    smtp: { host: 'mail.example.org', port: 587, isEncrypted: false },
  })
  const issues = (more: object) =>
    emailSettings.safeParse({ ...given, authserv: 'mx', ...more }).error?.issues[0]?.message
  expect(issues({ address: 'agent' })).toContain('is not an e-mail address')
  expect(issues({ imap: 'https://mail.example.org' })).toContain('is not a server')
  expect(issues({ authserv: '' })).toContain('Authentication-Results')
  expect(issues({ tls: 'no' })).toContain('must be required, unverified or optional')
  expect(issues({ ca: 'file.pem' })).toContain('PEM')
})
