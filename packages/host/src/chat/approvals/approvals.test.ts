import { randomUUID } from 'node:crypto'
import type { Outcome } from '@hatchway/protocol'
import { pino } from 'pino'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { until } from '../../../../testing/src/until.ts'
import { createRetries } from '../../base/retry.ts'
import { StoreFailure } from '../../base/storage-failure.ts'
import type { Taint } from '../../base/taint.ts'
import { kernelCommands } from '../../commands/index.ts'
import { createCommands } from '../../commands/registry.ts'
import type { Evidence } from '../../commands/service-tools.ts'
import type { ConfigInput } from '../../config.ts'
import type { GuardRules } from '../../guard/guard.ts'
import type { TrustLabels } from '../../guard/labels.ts'
import { defineService } from '../../services/define.ts'
import { createHeldCommands, type HeldCommands } from '../../services/held.ts'
import { textMessage } from '../../store/text-message.ts'
import { groupOf, openChats } from '../channels/testing.ts'
import { readHistory } from '../history.ts'
import type { Decided } from './code.ts'
import { revokeRule } from './rules.ts'

const groups = [groupOf('main', { main: true }), groupOf('family'), groupOf('shop', { jid: 'text:shop' })]

const approvers = { groups: { main: { approvers: ['ann', 'bob', 'operator'] } } }

/** Chats with a watch over what agents want. */
interface Options {
  config?: ConfigInput
  approvalMs?: number
  directory?: string
  secrets?: (payload: unknown) => boolean
  evidence?: () => Promise<Evidence | undefined>
  /** of the tool `edit`; may be changed meanwhile by whoever gave it */
  labels?: TrustLabels
  /** which program its tools are of */
  origin?: string
  taint?: Taint
}

async function open(options: Options = {}) {
  const called: unknown[] = []
  let looks = 0
  const labels = { ...options.labels }
  const input = z.looseObject({ to: z.string(), text: z.string() })
  const call = async (input: unknown) => {
    called.push(input)
    return { sent: true }
  }
  const defined = defineService({
    name: 'mailer',
    tools: {
      edit: { title: 'Change a file', description: 'Changes a file.', input, labels, call },
      mail: {
        title: 'Send a mail',
        description: 'Sends a mail.',
        input,
        labels: { public_source: 'no', secret_data: 'no', public_sink: 'yes', dangerous_writes: 'yes' },
        call,
      },
    },
  })
  const { origin } = options
  const mailer = {
    ...defined,
    tools: () => defined.tools().map(tool => ({ ...tool, ...(origin === undefined ? {} : { origin }) })),
  }
  const rules: GuardRules = {
    containsSecrets: () => false,
    isOffline: () => false,
    approvalMs: options.approvalMs ?? 600_000,
  }
  // It needs the chats, and they need it.
  let reviewer: HeldCommands
  const heldCommands: HeldCommands = {
    take: (request, signal) => reviewer.take(request, signal),
    release: (seq, decision, along) => reviewer.release(seq, decision, along),
    deny: (seq, decision, along) => reviewer.deny(seq, decision, along),
    refuse: (seq, error) => reviewer.refuse(seq, error),
  }
  const host = await openChats({
    groups,
    directory: options.directory,
    config: { ...approvers, ...options.config },
    services: [mailer],
    // One that shows no cards, as a channel of text alone.
    channels: [
      { name: 'text', reaches: jid => jid.startsWith('text:'), messageLimit: 100, send: async () => {} },
    ],
    guard: { rules, heldCommands },
  })
  const { store, chats, requestQueue, jidOf } = host
  const { approvals } = chats
  if (!approvals) throw new Error('there are no approvals')
  reviewer = createHeldCommands({
    store,
    commands: createCommands(kernelCommands),
    requestQueue,
    effects: { apply: host.apply, decided: () => {} },
    rules,
    context: host.context,
    findSecrets: async payload => {
      looks++
      return options.secrets?.(payload) ? [{ kind: 'key', where: 'text' }] : []
    },
    evidence: async () => options.evidence?.(),
    inspect: async () => ({ verdict: 'unsure', reason: 'who knows', by: 'inspector:rules' }),
    approvals,
    fault: () => {},
    retries: createRetries({ log: pino({ level: 'silent' }), now: Date.now }),
    log: pino({ level: 'silent' }),
    now: Date.now,
  })
  store.transaction(transaction => {
    for (const { folder } of groups) {
      transaction.addTaint(
        folder,
        'session',
        options.taint ?? { corrupted: true, secret: true },
        'a test',
        Date.now(),
      )
    }
  })
  requestQueue.resume()
  requestQueue.runsGone()
  requestQueue.ready()
  approvals.mend()
  await host.catalogue.start()

  /** A wish that needs a person, once that person has been asked. */
  const want = async (
    folder: string,
    text = 'the secret',
    { id = randomUUID(), run = '', tool = 'mail' } = {},
  ) => {
    const content =
      folder === 'main' && tool === 'mail'
        ? { type: 'send_message', payload: { jid: 'chat:family', text } }
        : { type: 'call_service', payload: { tool, arguments: { to: 'x@example.org', text } } }
    const { seq, outcome } = await host.command(folder, id, content, run)
    expect(outcome).toBeNull()
    await until('a person is asked', () => store.approvals.approval(seq) !== undefined)
    const row = store.approvals.approval(seq)
    if (!row) throw new Error('nobody is asked')
    return { ...row, id }
  }
  /** Once more what waits already: there is no other card for it. */
  const wantSame = async (folder: string, text: string, id = randomUUID()) => {
    const payload = { jid: 'chat:family', text }
    const { seq } = await host.command(folder, id, { type: 'send_message', payload })
    const before = looks
    await until('it was looked at', () => looks > before)
    await new Promise(resolve => setImmediate(resolve))
    expect(store.approvals.approval(seq)).toBeUndefined()
    return { seq, id }
  }
  const click = (folder: string, seq: number, decision: Decided, sender = 'ann', words?: string) =>
    chats.inbound.decide('test', {
      jid: jidOf(folder),
      id: String(seq),
      decision,
      words,
      sender,
      senderName: sender,
    })
  return {
    ...host,
    approvals,
    watch: heldCommands,
    called,
    looks: () => looks,
    want,
    wantSame,
    click,
    status: (seq: number) => store.approvals.approval(seq)?.status,
    /** what was said in a chat by agents and by the host, cards apart */
    said: (folder: string) =>
      store
        .messages({})
        .filter(({ jid, kind }) => jid === jidOf(folder) && kind === 'text')
        .map(({ text }) => text),
    /** of one decision, in the order in which they were written */
    audit: () =>
      store.audit
        .find({}, { below: null, span: 1000, limit: 1000 })
        .rows.toReversed()
        .map(({ action, outcome, decidedBy, actor }) => [action, outcome, decidedBy ?? actor]),
  }
}

const operator = { channel: 'web', sender: 'operator', senderName: 'Operator' }

describe('what a person is asked', () => {
  test('stands in the chat with what, why and a code of its own, and nothing has happened', async () => {
    const host = await open()
    const one = await host.want('main', 'one')
    const two = await host.want('main', 'two')
    expect(one.code).not.toBe(two.code)
    const { entries } = readHistory(host.store, { jid: 'chat:main', folder: 'main' }, 10, host.approvals)
    expect(entries).toMatchObject([
      {
        key: `out:${one.messageId}`,
        kind: 'approval',
        text: expect.stringContaining(`allow ${one.code}`),
        approval: {
          id: String(one.seq),
          action: {
            name: 'send_message',
            summary: 'say something in the chat chat:family',
            payload: { fields: expect.arrayContaining([{ name: 'text', text: '"one"' }]), more: 0 },
          },
          why: expect.stringContaining('has read secrets'),
          status: 'open',
          decided_by: null,
          expires_at: new Date(one.expiresAt).toISOString(),
          can_decide: true,
        },
      },
      { approval: { id: String(two.seq) } },
    ])
    expect(JSON.stringify(entries.map(({ approval }) => approval))).not.toContain(one.code)
    expect(host.said('family')).toEqual([])
    expect(host.sent(one.id)).toEqual([])
    expect(host.audit()).toEqual([
      ['send_message', 'held', 'agent'],
      ['send_message', 'held', 'agent'],
    ])
  })

  test('is asked once, however often the watch comes back to it', async () => {
    const host = await open()
    const asked = await host.want('main')
    const [request] = host.requestQueue.open()
    if (!request) throw new Error('nothing is held')
    host.watch.take(request, new AbortController().signal)
    await until('it was looked at', () => host.approvals.isAsked(asked.seq))
    await new Promise(resolve => setImmediate(resolve))
    expect(host.store.messages({}).filter(({ kind }) => kind === 'approval')).toHaveLength(1)
    expect(host.store.approvals.approval(asked.seq)).toMatchObject({ code: asked.code })
  })
})

describe('what is asked again and again', () => {
  const cards = (host: Awaited<ReturnType<typeof open>>) =>
    host.store.messages({}).filter(({ kind }) => kind === 'approval').length

  test('is one card: a yes is for one of them, a no for all', async () => {
    const host = await open()
    const first = await host.want('main', 'hello')
    const second = await host.wantSame('main', 'hello')
    const third = await host.wantSame('main', 'hello')
    expect(cards(host)).toBe(1)
    host.click('main', first.seq, 'allow')
    expect(host.said('family')).toEqual(['hello'])
    // For the next one somebody is asked again.
    expect([second, third].map(({ seq }) => host.status(seq))).toEqual(['open', undefined])
    host.click('main', second.seq, 'deny')
    await until('both are answered', () => host.sent(second.id).length + host.sent(third.id).length === 2)
    expect([...host.sent(second.id), ...host.sent(third.id)]).toMatchObject([
      { error: { code: 'denied' } },
      { error: { code: 'denied' } },
    ])
    expect(cards(host)).toBe(2)
    expect(host.said('family')).toEqual(['hello'])
  })

  test('and taken back each time is no longer put to anybody', async () => {
    const host = await open()
    for (let i = 0; i < 10; i++) {
      const { seq, id } = await host.want('main', `text ${i}`)
      await host.command('main', `c-${i}`, { type: 'cancel_request', payload: { request_id: id } })
      await until('it is closed', () => host.status(seq) === 'withdrawn')
    }
    const content = { type: 'send_message', payload: { jid: 'chat:family', text: 'once more' } }
    await host.command('main', 'r', content)
    await until('it is refused', () => host.sent('r').length > 0)
    expect(host.sent('r')).toMatchObject([{ error: { code: 'quota_exceeded' } }])
    expect(cards(host)).toBe(10)
    // Another group is asked for as ever.
    expect(await host.want('family', 'hello')).toMatchObject({ status: 'open' })
  })

  test('and left open has an end, too', async () => {
    const host = await open({ config: { limits: { openRequests: 20 } } })
    for (const text of ['one', 'two']) await host.want('main', text)
    await host.command('main', 'r', { type: 'send_message', payload: { jid: 'chat:family', text: 'three' } })
    await until('it is refused', () => host.sent('r').length > 0)
    expect(host.sent('r')).toMatchObject([{ error: { code: 'quota_exceeded' } }])
    expect(cards(host)).toBe(2)
  })
})

describe('what is released', () => {
  test('is what was shown, or nothing', async () => {
    const host = await open()
    const content = { type: 'unregister_group', payload: { jid: 'text:shop' } }
    const { seq } = await host.command('main', 'r', content)
    await until('a person is asked', () => host.status(seq) === 'open')
    expect(host.store.approvals.approval(seq)?.action.payload.fields).toContainEqual({
      name: 'folder',
      text: '"shop"',
    })
    // Another group has the chat by now.
    host.store.transaction(transaction => {
      transaction.deleteGroup('shop')
      transaction.insertGroup(groupOf('bank', { jid: 'text:shop' }))
    })
    host.click('main', seq, 'allow')
    await until('it is refused', () => host.sent('r').length > 0)
    expect(host.sent('r')).toMatchObject([{ ok: false, error: { code: 'conflict' } }])
    expect(host.store.group('bank')).toBeDefined()
  })

  test('is not asked about where nobody can be shown what it would do', async () => {
    const host = await open({
      evidence: async () => {
        throw new Error('no disk')
      },
    })
    await host.command('main', 'r', { type: 'send_message', payload: { jid: 'chat:family', text: 'x' } })
    await until('it is refused', () => host.sent('r').length > 0)
    expect(host.sent('r')).toMatchObject([{ error: { code: 'service_failed' } }])
    expect(host.store.approvals.list({ limit: 10 })).toEqual([])
  })
})

describe('what is said in the chat', () => {
  test('allows: it happens, the agent has its receipt, and calls nobody', async () => {
    const host = await open()
    const { seq, code, id } = await host.want('main', 'hello')
    expect(host.say('main', `Allow ${code.toLowerCase()}`)).toEqual({ ok: true, id: 1, status: 'used' })
    expect(host.said('family')).toEqual(['hello'])
    await until('there is a receipt', () => host.sent(id).length > 0)
    expect(host.sent(id)).toMatchObject([{ ok: true }])
    expect(host.store.approvals.approval(seq)).toMatchObject({
      status: 'allowed',
      decidedBy: 'Ann (ann)',
      rule: null,
      closedAt: expect.any(Number),
    })
    expect(host.store.agents.groupsWaiting()).toEqual([])
    expect(host.shown.filter(({ approval }) => approval)).toMatchObject([
      { approval: { status: 'allowed', decided_by: 'Ann (ann)', can_decide: false } },
    ])
    expect(host.audit()).toContainEqual(['send_message', 'allowed', 'person:ann'])
    // Where cards can be seen to change, nobody has to be told.
    expect(host.said('main')).toEqual([])
  })

  test('denies, and the words go on to the agent', async () => {
    const host = await open()
    const { seq, code, id } = await host.want('main', 'hello')
    const plain = await host.want('main', 'hello again')
    expect(host.say('main', `@hatch deny ${code}: too expensive\u001b`)).toMatchObject({ status: 'used' })
    expect(host.say('main', `DENY ${plain.code}`, operator)).toMatchObject({ status: 'used' })
    await until('there are receipts', () => host.sent(id).length + host.sent(plain.id).length === 2)
    expect([...host.sent(id), ...host.sent(plain.id)]).toEqual([
      { ok: false, error: { code: 'denied', message: 'Ann (ann) said no. too expensive\u001b' } },
      { ok: false, error: { code: 'denied', message: 'Operator said no.' } },
    ])
    expect(host.store.approvals.approval(seq)).toMatchObject({
      status: 'denied',
      words: 'too expensive\\u001b',
    })
    expect(host.said('family')).toEqual([])
    expect(host.audit()).toContainEqual(['send_message', 'denied', 'operator'])
  })

  test('with a code that was used, late, or never given changes nothing, and is told so', async () => {
    const host = await open()
    const { code } = await host.want('main', 'hello')
    host.say('main', `allow ${code}`)
    expect(host.say('main', `deny ${code}`, { sender: 'bob', senderName: 'Bob' })).toMatchObject({ ok: true })
    expect(host.say('main', 'allow BCDFG-HJKLM')).toMatchObject({ ok: true, status: 'used' })
    expect(host.said('main')).toEqual([
      'Ann (ann) has allowed it.',
      'No open approval with this code in this chat.',
    ])
    expect(host.said('family')).toEqual(['hello'])
    // What is no decision is said to the agent, as ever.
    expect(host.say('main', 'allow me to explain')).toMatchObject({ status: 'waiting' })
  })

  test('in another chat, with this one’s code, is nothing', async () => {
    const host = await open({ config: { groups: { ...approvers.groups, family: { approvers: ['ann'] } } } })
    const { seq, code } = await host.want('main', 'hello')
    host.say('family', `allow ${code}`)
    expect(host.said('family')).toEqual(['No open approval with this code in this chat.'])
    expect(host.status(seq)).toBe('open')
    expect(
      host.chats.inbound.decide('test', {
        ...person('ann'),
        jid: 'chat:family',
        id: String(seq),
        decision: 'allow',
      }),
    ).toMatchObject({
      error: { code: 'not_found' },
    })
    expect(host.status(seq)).toBe('open')
  })

  test('by somebody who may not decide is not even looked up, and they are told', async () => {
    const host = await open()
    const { seq, code } = await host.want('main', 'hello')
    const eve = { sender: 'eve', senderName: 'Operator' }
    expect(host.say('main', `allow ${code}`, eve)).toMatchObject({ ok: true, status: 'used' })
    // Nobody is the operator because they say so.
    expect(host.say('main', `allow ${code}`, { ...operator, channel: 'webhook' })).toMatchObject({ ok: true })
    expect(host.said('main')).toEqual([
      'Operator (eve) may not decide this. Ask ann, bob, or the operator.',
      'Operator (operator) may not decide this. Ask ann, bob, or the operator.',
    ])
    expect(host.click('main', seq, 'allow', 'eve')).toMatchObject({ error: { code: 'forbidden' } })
    expect(host.status(seq)).toBe('open')
    // Nor do they keep those from deciding who may.
    for (let i = 0; i < 20; i++) host.say('main', `allow ${code}`, eve)
    expect(host.say('main', `allow ${code}`, eve)).toMatchObject({ error: { code: 'quota_exceeded' } })
    expect(host.said('main')).toHaveLength(5)
    expect(host.say('main', `allow ${code}`)).toMatchObject({ ok: true })
    expect(host.said('family')).toEqual(['hello'])
  })

  test('too many wrong codes, and the right one is not looked at either', async () => {
    const host = await open()
    const { seq, code } = await host.want('main', 'hello')
    for (let i = 0; i < 5; i++) expect(host.say('main', 'allow BBBBB-BBBBB')).toMatchObject({ ok: true })
    expect(host.say('main', `allow ${code}`)).toMatchObject({ error: { code: 'quota_exceeded' } })
    expect(host.status(seq)).toBe('open')
    expect(host.said('family')).toEqual([])
    // Who sees the card need not guess.
    expect(host.click('main', seq, 'deny')).toMatchObject({ ok: true })
  })

  test('twice, because it was delivered twice, is said once', async () => {
    const host = await open()
    const { code } = await host.want('main', 'hello')
    expect(host.say('main', `allow ${code}`, { externalId: 'x' })).toMatchObject({ id: 1 })
    expect(host.say('main', `allow ${code}`, { externalId: 'x' })).toMatchObject({ ok: true, id: undefined })
    expect(host.said('main')).toEqual([])
    const wrong = { externalId: 'y' }
    for (let i = 0; i < 10; i++) host.say('main', 'allow BBBBB-BBBBB', wrong)
    expect(host.said('main')).toEqual(['No open approval with this code in this chat.'])
  })

  test('by an approver who may not call the agent decides, and is not heard otherwise', async () => {
    const host = await open({
      config: { groups: { main: { approvers: ['ann'], senders: ['bob'] } } },
    })
    const { code } = await host.want('main', 'hello')
    expect(host.say('main', 'hello')).toMatchObject({ error: { code: 'forbidden' } })
    expect(host.say('main', `allow ${code}`, { sender: 'eve' })).toMatchObject({
      error: { code: 'forbidden' },
    })
    expect(host.say('main', `allow ${code}`, { sender: 'bob' })).toMatchObject({ ok: true })
    expect(host.said('family')).toEqual([])
    expect(host.say('main', `allow ${code}`)).toMatchObject({ ok: true })
    expect(host.said('family')).toEqual(['hello'])
  })

  test('where there are no cards, everybody is told how it ended', async () => {
    const host = await open({ config: { groups: { shop: { approvers: ['ann'] } } } })
    const { code } = await host.want('shop', 'hello')
    host.say('shop', `deny ${code} no`)
    const second = await host.want('shop', 'hello')
    host.approvals.decide(String(second.seq), { decision: 'allow' })
    expect(host.said('shop')).toEqual([
      'Ann (ann) has said no: no (To use mail (mailer): Send a mail)',
      'Operator has allowed it. (To use mail (mailer): Send a mail)',
    ])
  })
})

const person = (sender: string) => ({ sender, senderName: sender })

describe('what is decided in the card', () => {
  test('counts once: whoever comes second is told who was faster', async () => {
    const host = await open()
    const { seq, id } = await host.want('main', 'hello')
    expect(host.click('main', seq, 'deny', 'bob', ' too expensive ')).toMatchObject({
      ok: true,
      approval: { status: 'denied', decidedBy: 'bob', words: 'too expensive' },
    })
    expect(host.click('main', seq, 'allow')).toEqual({
      ok: false,
      error: { code: 'wrong_state', message: 'bob has said no: too expensive' },
    })
    expect(host.approvals.decide(String(seq), { decision: 'always' })).toMatchObject({
      error: { code: 'wrong_state' },
    })
    await until('there is a receipt', () => host.sent(id).length > 0)
    expect(host.sent(id)).toHaveLength(1)
    expect(host.said('family')).toEqual([])
    expect(host.store.approvals.rules()).toEqual([])
  })

  test('of something that is none is refused', async () => {
    const host = await open()
    const { seq } = await host.want('main', 'hello')
    const codeOf = (settled: ReturnType<typeof host.click>) => (settled.ok ? 'ok' : settled.error.code)
    expect(codeOf(host.click('main', seq + 1, 'allow'))).toBe('not_found')
    expect(codeOf(host.click('shop', seq, 'allow'))).toBe('not_found')
    expect(codeOf(host.click('nobody', seq, 'allow'))).toBe('not_found')
    for (const which of ['', '-1', '1e3', '__proto__', 'BCDFG-HJKLM', '9'.repeat(400)]) {
      expect(host.approvals.decide(which, { decision: 'allow' })).toMatchObject({
        error: { code: 'not_found' },
      })
    }
    expect(host.status(seq)).toBe('open')
  })

  test('lets a service be asked, once, and what it answers is the receipt', async () => {
    const host = await open({ config: { groups: { family: { approvers: ['ann'] } } } })
    const { seq, id } = await host.want('family', 'hello')
    expect(host.called).toEqual([])
    expect(host.click('family', seq, 'allow')).toMatchObject({ ok: true })
    // The request goes on under the same number, and is nobody's to deny any more.
    expect(host.click('family', seq, 'deny')).toMatchObject({ error: { code: 'wrong_state' } })
    await until('there is a receipt', () => host.sent(id).length > 0)
    expect(host.called).toEqual([{ to: 'x@example.org', text: 'hello' }])
    expect(host.sent(id)).toEqual([{ ok: true, result: { sent: true } }])
    expect(host.status(seq)).toBe('allowed')
  })
})

describe('"allow always"', () => {
  test('covers this group, this action and exactly this, and nothing else', async () => {
    const host = await open({
      config: { groups: { main: { approvers: ['ann'] }, family: { approvers: ['ann'] } } },
    })
    const { seq, code } = await host.want('family', 'hello')
    host.say('family', `always ${code}`)
    await until('it is sent', () => host.called.length === 1)
    expect(host.store.approvals.rules()).toMatchObject([
      { group: 'family', name: 'mail', summary: 'use mail (mailer): Send a mail', madeBy: 'Ann (ann)' },
    ])
    expect(host.store.approvals.approval(seq)).toMatchObject({ status: 'allowed', rule: 1 })
    const mail = (text: string, more = {}) => ({
      type: 'call_service',
      payload: { tool: 'mail', arguments: { text, to: 'x@example.org', ...more } },
    })
    await host.command('family', 'same', mail('hello'))
    await until('it is sent', () => host.called.length === 2)
    const others = [
      await host.command('family', 'o-1', mail('hello ')),
      await host.command('family', 'o-2', mail('hello', { cc: 'y@example.org' })),
      await host.command('shop', 'o-3', mail('hello')),
    ]
    for (const { seq } of others) {
      await until('a person is asked', () => host.status(seq) === 'open')
    }
    expect(host.called).toHaveLength(2)
    expect(host.audit()).toContainEqual(['mail', 'allowed', 'rule:1'])
    expect(host.audit()).toContainEqual(['approval_rule', 'noted', 'person:ann'])
  })

  test('lets what is exactly the same and waits already happen too', async () => {
    const host = await open()
    const first = await host.want('main', 'hello')
    await host.wantSame('main', 'hello')
    const other = await host.want('main', 'goodbye')
    expect(host.click('main', first.seq, 'always')).toMatchObject({ ok: true, approval: { rule: 1 } })
    expect([first, other].map(({ seq }) => host.status(seq))).toEqual(['allowed', 'open'])
    expect(host.said('family')).toEqual(['hello', 'hello'])
    expect(host.click('main', other.seq, 'always')).toMatchObject({ ok: true, approval: { rule: 2 } })
    expect(host.store.approvals.rules('main')).toHaveLength(2)
    expect(host.store.approvals.rules('family')).toEqual([])
  })

  test('does not count once a secret is in it, and is not offered where there is one', async () => {
    let isFound = false
    const host = await open({ secrets: () => isFound })
    const { seq } = await host.want('main', 'hello')
    expect(host.click('main', seq, 'always')).toMatchObject({ ok: true, approval: { rule: 1 } })
    isFound = true
    const again = await host.want('main', 'hello')
    expect(again).toMatchObject({
      why: 'The conversation has read secrets, and text that strangers may have written. It contains what looks like a secret (key, in text).',
      action: { always: false },
    })
    expect(host.click('main', again.seq, 'always')).toMatchObject({ error: { code: 'wrong_state' } })
    expect(host.said('family')).toEqual(['hello'])
    expect(host.click('main', again.seq, 'allow')).toMatchObject({ ok: true })
    expect(host.said('family')).toEqual(['hello', 'hello'])
  })

  test('is asked for in the chat that the configuration names, and decided there by the group’s own approvers', async () => {
    const host = await open({
      config: {
        groups: { family: { approvalChat: 'chat:main', approvers: ['ann'] }, main: { approvers: ['ben'] } },
      },
    })
    const { seq, code, jid } = await host.want('family')
    expect(jid).toBe('chat:main')
    expect(host.said('family')).toEqual([])
    expect(host.click('family', seq, 'allow')).toMatchObject({ error: { code: 'not_found' } })
    expect(host.click('main', seq, 'allow', 'ben')).toMatchObject({ error: { code: 'forbidden' } })
    host.say('main', `allow ${code}`, { sender: 'ben', senderName: 'Ben' })
    expect(host.status(seq)).toBe('open')
    host.say('main', `allow ${code}`)
    expect(host.status(seq)).toBe('allowed')
    // A card of main's is decided in main's chat by its own approvers, as before.
    const own = await host.want('main')
    expect(host.click('main', own.seq, 'allow', 'ann')).toMatchObject({ error: { code: 'forbidden' } })
    expect(host.click('main', own.seq, 'allow', 'ben')).toMatchObject({ ok: true })
  })

  test('is decided on another platform only by those whom the list names there', async () => {
    const host = await open({
      config: { groups: { family: { approvalChat: 'text:shop', approvers: ['ann', 'text:ben'] } } },
    })
    const { seq, code } = await host.want('family')
    const press = (channel: string, sender: string) =>
      host.chats.inbound.decide(channel, {
        ...{ jid: 'text:shop', id: String(seq), decision: 'allow', sender, senderName: sender },
      })
    // Somebody else who has Ann's id here.
    expect(press('text', 'ann')).toMatchObject({
      error: { code: 'forbidden', message: expect.stringContaining('Ask log:ann or text:ben.') },
    })
    host.say('shop', `allow ${code}`, { sender: 'ann', channel: 'text' })
    expect(host.status(seq)).toBe('open')
    expect(press('text', 'ben')).toMatchObject({ ok: true })
  })

  test('is not said in a chat that showed only a part of it', async () => {
    const host = await open()
    const { seq, code } = await host.want('main', 'x'.repeat(5000))
    host.say('main', `always ${code}`)
    expect(host.said('main')).toEqual([expect.stringContaining('Not all of it was shown here')])
    expect(host.click('main', seq, 'always')).toMatchObject({ error: { code: 'wrong_state' } })
    expect(host.status(seq)).toBe('open')
    // The console shows all of it.
    expect(host.approvals.decide(String(seq), { decision: 'always' })).toMatchObject({
      ok: true,
      approval: { rule: 1 },
    })
  })

  test('binds what was looked up for it, and has to be asked for anew when that is another', async () => {
    let revision = 'aaaa'
    const host = await open({ evidence: async () => ({ fields: { revision } }) })
    const { seq, action } = await host.want('main', 'hello')
    expect(action.payload.fields).toContainEqual({ name: 'revision', text: '"aaaa"' })
    host.click('main', seq, 'always')
    await host.command('main', 'same', {
      type: 'send_message',
      payload: { jid: 'chat:family', text: 'hello' },
    })
    await until('it is sent', () => host.said('family').length === 2)
    revision = 'bbbb'
    expect(await host.want('main', 'hello')).toMatchObject({ status: 'open' })
    expect(host.said('family')).toHaveLength(2)
  })

  test('goes with its group, and its number does not come back', async () => {
    const host = await open()
    const { seq } = await host.want('main', 'hello')
    const waiting = await host.want('main', 'goodbye')
    host.click('main', seq, 'always')
    host.store.transaction(transaction => {
      transaction.deleteGroup('main')
      transaction.insertGroup(groupOf('main', { main: true }))
      transaction.addTaint('main', 'session', { corrupted: true, secret: true }, 'a test', Date.now())
    })
    expect(host.store.approvals.rules()).toEqual([])
    // Not a moment is left in which the new group would do what the old one wanted.
    expect(host.click('main', waiting.seq, 'allow')).toMatchObject({ error: { code: 'wrong_state' } })
    host.requestQueue.groupGone('main')
    const again = await host.want('main', 'hello')
    expect(host.click('main', again.seq, 'always')).toMatchObject({ ok: true, approval: { rule: 2 } })
    expect(host.said('family')).toEqual(['hello', 'hello'])
  })
})

describe('a tool that is allowed whatever it is called with', () => {
  const tool = 'edit'
  const local: TrustLabels = {
    public_source: 'no',
    secret_data: 'no',
    public_sink: 'no',
    dangerous_writes: 'yes',
  }
  const use = (host: Awaited<ReturnType<typeof open>>, folder: string, text: string) =>
    host.command(folder, text, { type: 'call_service', payload: { tool, arguments: { to: 'a file', text } } })

  test('asks no more, for this group alone, until that is revoked', async () => {
    const host = await open({ labels: local })
    const { seq, code, action } = await host.want('main', 'one', { tool })
    expect(action).toMatchObject({ always: true, standing: true })
    host.say('main', `always tool ${code}`)
    expect(host.status(seq)).toBe('allowed')
    expect(host.store.approvals.rules('main')).toMatchObject([
      { id: 1, name: 'edit', scope: 'tool', summary: expect.stringContaining('whatever it is called with') },
    ])
    await use(host, 'main', 'two')
    await until('it is done', () => host.called.length === 2)
    expect(host.audit()).toContainEqual(['edit', 'allowed', 'rule:1'])
    // Neither another group nor another tool has it.
    await host.want('family', 'three', { tool })
    await host.want('main', 'four')
    await revokeRule(host.store, 1, Date.now())
    await host.want('main', 'five', { tool })
    expect(host.called).toHaveLength(2)
  })

  test('is asked about again once a secret is in it', async () => {
    let isFound = false
    const host = await open({ labels: local, secrets: () => isFound })
    const { seq } = await host.want('main', 'one', { tool })
    expect(host.click('main', seq, 'always_tool')).toMatchObject({ ok: true, approval: { rule: 1 } })
    isFound = true
    const again = await host.want('main', 'two', { tool })
    expect(again.action).toMatchObject({ always: false, standing: false })
    expect(host.click('main', again.seq, 'always_tool')).toMatchObject({ error: { code: 'wrong_state' } })
  })

  test('is asked about again after the conversation has read worse, or when its labels are worse', async () => {
    const before = await open({ labels: local, taint: { corrupted: true, secret: false } })
    const { seq } = await before.want('main', 'one', { tool })
    expect(before.click('main', seq, 'always_tool')).toMatchObject({ ok: true })
    await use(before, 'main', 'two')
    await until('it is done', () => before.called.length === 2)
    before.store.transaction(transaction =>
      transaction.addTaint('main', 'session', { corrupted: false, secret: true }, 'a test', Date.now()),
    )
    const worse = await before.want('main', 'three', { tool })
    expect(before.click('main', worse.seq, 'always_tool')).toMatchObject({
      ok: true,
      approval: { rule: 2 },
    })
    before.kill()
    const host = await open({ directory: before.directory, labels: { ...local, public_sink: undefined } })
    await host.want('main', 'four', { tool })
    const forbidden = await open({ labels: { ...local, dangerous_writes: 'forbidden' } })
    expect((await use(forbidden, 'main', 'five')).outcome).toMatchObject({ error: { code: 'denied' } })
  })

  test.each([
    ['holds secrets now', { labels: { ...local, secret_data: 'yes' } }],
    ['brings in strangers’ text now', { labels: { ...local, public_source: 'yes' } }],
    ['is that of another program now', { origin: 'another' }],
  ] as const)('is asked about again when it %s, and so is what was held before', async (_, now) => {
    const held = Promise.withResolvers<undefined>()
    let isSlow = false
    const before = await open({
      labels: local,
      origin: 'one',
      evidence: () => (isSlow ? held.promise : Promise.resolve(undefined)),
    })
    const { seq } = await before.want('main', 'one', { tool })
    expect(before.click('main', seq, 'always_tool')).toMatchObject({ ok: true })
    await use(before, 'main', 'two')
    await until('it is done', () => before.called.length === 2)
    isSlow = true
    const waiting = await use(before, 'main', 'three')
    before.kill()
    const host = await open({ directory: before.directory, labels: local, origin: 'one', ...now })
    await until('a person is asked', () => host.status(waiting.seq) === 'open')
    await host.want('main', 'four', { tool })
    expect(host.called).toEqual([])
  })

  test('and exactly one call of it are the rules of one program; what was held for it is not done by another', async () => {
    const before = await open({ labels: local, origin: 'one' })
    const { seq } = await before.want('main', 'one', { tool })
    expect(before.click('main', seq, 'always')).toMatchObject({ ok: true })
    const same = { tool, arguments: { to: 'x@example.org', text: 'one' } }
    await before.command('main', 'again', { type: 'call_service', payload: same })
    await until('it is done', () => before.called.length === 2)
    const waiting = await before.want('main', 'two', { tool })
    before.kill()
    const host = await open({ directory: before.directory, labels: local, origin: 'another' })
    await host.want('main', 'one', { tool })
    host.click('main', waiting.seq, 'allow')
    await until('it is answered', () => host.sent(waiting.id).length > 0)
    expect(host.sent(waiting.id)).toMatchObject([{ error: { code: 'conflict' } }])
    expect(host.called).toEqual([])
  })

  test('is never offered for a known way out after secrets', async () => {
    const host = await open({ labels: { ...local, public_sink: 'yes' } })
    const { seq, action } = await host.want('main', 'one', { tool })
    expect(action).toMatchObject({ always: true, standing: false })
    expect(host.click('main', seq, 'always_tool')).toMatchObject({ error: { code: 'wrong_state' } })
    expect(host.status(seq)).toBe('open')
  })
})

describe('one that is over', () => {
  test('because nobody decided in time, says so on time and takes nothing more', async () => {
    const host = await open({ approvalMs: 40, config: { groups: { shop: { approvers: ['ann'] } } } })
    const { seq, code, id } = await host.want('shop', 'hello')
    await until('it is closed', () => host.status(seq) === 'expired')
    expect(host.sent(id)).toMatchObject([{ ok: false, error: { code: 'expired' } }])
    expect(host.shown.findLast(({ approval }) => approval)?.approval).toMatchObject({
      status: 'expired',
      decided_by: null,
      can_decide: false,
    })
    expect(host.click('shop', seq, 'allow')).toEqual({
      ok: false,
      error: { code: 'wrong_state', message: 'Nobody decided in time, so it was not done.' },
    })
    host.say('shop', `allow ${code}`)
    expect(host.said('shop')).toEqual([
      'Nobody decided in time, so it was not done. (To use mail (mailer): Send a mail)',
      'Nobody decided in time, so it was not done.',
    ])
    expect(host.called).toEqual([])
    expect(host.audit()).toContainEqual(['mail', 'expired', 'host'])
  })

  test('in the very moment of the decision is over', async () => {
    const host = await open({ approvalMs: 60 })
    const { seq, expiresAt, id } = await host.want('main', 'hello')
    // The time has come, and nobody has had a chance to note it.
    while (Date.now() < expiresAt);
    expect(host.click('main', seq, 'allow')).toMatchObject({ error: { code: 'wrong_state' } })
    await until('it is closed', () => host.status(seq) === 'expired')
    expect(host.said('family')).toEqual([])
    expect(host.sent(id)).toMatchObject([{ error: { code: 'expired' } }])
  })

  test('because it was taken back, or its group or its container is gone', async () => {
    const host = await open()
    const taken = await host.want('main', 'one')
    await host.command('main', 'c-1', { type: 'cancel_request', payload: { request_id: taken.id } })
    expect(host.click('main', taken.seq, 'allow')).toEqual({
      ok: false,
      error: { code: 'wrong_state', message: 'It is no longer needed.' },
    })
    await until('it is closed', () => host.status(taken.seq) === 'withdrawn')
    const left = await host.want('main', 'two')
    host.requestQueue.containerGone('main')
    await until('it is closed', () => host.status(left.seq) === 'withdrawn')
    expect(host.sent(left.id)).toMatchObject([{ error: { code: 'cancelled' } }])
    expect(host.click('main', left.seq, 'allow')).toMatchObject({ error: { code: 'wrong_state' } })
    // Nobody ever waited for this one.
    const plain = await host.command('main', undefined, {
      type: 'send_message',
      payload: { jid: 'chat:family', text: 'plain' },
    })
    await until('a person is asked', () => host.status(plain.seq) === 'open')
    host.requestQueue.containerGone('main')
    await new Promise(resolve => setImmediate(resolve))
    expect(host.click('main', plain.seq, 'allow')).toMatchObject({ ok: true })
    const removed = await host.want('main', 'three')
    host.store.transaction(transaction => transaction.deleteGroup('main'))
    host.requestQueue.groupGone('main')
    expect(host.approvals.decide(String(removed.seq), { decision: 'allow' })).toMatchObject({
      error: { code: 'wrong_state' },
    })
    await until('nothing is held', () => host.requestQueue.open().length === 0)
    expect(host.status(removed.seq)).toBe('withdrawn')
    expect(host.said('family')).toEqual(['plain'])
  })

  test.each(['containerGone', 'turnStopped'] as const)(
    'because of %s before a person was asked: nobody is, and what rules allow is done all the same',
    async way => {
      let looked = Promise.resolve()
      const host = await open({
        evidence: async () => {
          await looked
          return undefined
        },
      })
      const allowed = await host.want('main', 'good morning')
      expect(host.click('main', allowed.seq, 'always')).toMatchObject({ ok: true })
      const looking = Promise.withResolvers<void>()
      looked = looking.promise
      const ask = (id: string, text: string) =>
        host.command('main', id, { type: 'send_message', payload: { jid: 'chat:family', text } })
      const { seq } = await ask('late-1', 'the door code')
      await ask('late-2', 'good morning')
      host.requestQueue[way]('main')
      looking.resolve()
      await until('both are over', () => host.requestQueue.open().length === 0)
      expect(host.status(seq)).toBeUndefined()
      expect(host.sent('late-1')).toMatchObject([{ error: { code: 'cancelled' } }])
      expect(host.sent('late-2')).toMatchObject([{ ok: true }])
      expect(host.said('family')).toEqual(['good morning', 'good morning'])
    },
  )

  test('because something else let it happen, cannot be denied under the number it goes on with', async () => {
    const host = await open({ config: { groups: { family: { approvers: ['ann'] } } } })
    const { seq, id } = await host.want('family', 'hello')
    host.watch.release(seq, { by: 'host', reason: 'a test', gate: 'inspect' })
    expect(host.click('family', seq, 'deny')).toEqual({
      ok: false,
      error: { code: 'wrong_state', message: 'Somebody has allowed it.' },
    })
    await until('there is a receipt', () => host.sent(id).length > 0)
    expect(host.sent(id)).toMatchObject([{ ok: true }])
    expect(host.status(seq)).toBe('allowed')
  })
})

describe('after a crash', () => {
  test('what was asked can still be decided, with the same code, and is not asked again', async () => {
    const before = await open()
    const { seq, code, id } = await before.want('main', 'hello')
    before.kill()
    const host = await open({ directory: before.directory })
    await new Promise(resolve => setImmediate(resolve))
    // Nor is anybody else asked about it: it is a person's to decide.
    expect(host.looks()).toBe(0)
    expect(host.store.messages({}).filter(({ kind }) => kind === 'approval')).toHaveLength(1)
    expect(host.status(seq)).toBe('open')
    expect(host.say('main', `allow ${code}`)).toMatchObject({ ok: true })
    await until('there is a receipt', () => host.sent(id).length > 0)
    expect(host.said('family')).toEqual(['hello'])
  })

  test('what a run had asked is taken back, as it ended with the host', async () => {
    const before = await open()
    const dead = await before.want('main', 'hello', { run: 'run-1' })
    const other = await before.want('main', 'goodbye')
    before.kill()
    const host = await open({ directory: before.directory })
    await until('it is closed', () => host.status(dead.seq) === 'withdrawn')
    expect(host.sent(dead.id)).toMatchObject([{ ok: false, error: { code: 'cancelled' } }])
    expect(host.click('main', dead.seq, 'allow')).toMatchObject({ error: { code: 'wrong_state' } })
    // Whoever is no run of the host's may still wait.
    expect(host.status(other.seq)).toBe('open')
    expect(host.said('family')).toEqual([])
  })

  test('what was allowed has happened once, even if its card was not closed yet', async () => {
    const before = await open()
    const done = await before.want('main', 'hello')
    const refused = await before.want('main', 'goodbye')
    // What the watch does is a commit of its own; nothing came after it.
    before.watch.release(done.seq, { by: 'person:ann', reason: 'a test', gate: 'ask' })
    before.watch.deny(refused.seq, { by: 'person:ann', reason: 'a test', gate: 'ask' })
    expect(before.status(done.seq)).toBe('open')
    before.kill()
    const host = await open({ directory: before.directory })
    expect(host.status(done.seq)).toBe('allowed')
    expect(host.status(refused.seq)).toBe('denied')
    expect(host.click('main', done.seq, 'allow')).toMatchObject({ error: { code: 'wrong_state' } })
    expect(host.said('family')).toEqual(['hello'])
  })

  test('what was decided, by whom and whether for ever, is one commit with what was done', async () => {
    const before = await open()
    const always = await before.want('main', 'hello')
    const refused = await before.want('main', 'goodbye')
    const { transaction } = before.store
    for (const { seq, decision } of [
      { seq: always.seq, decision: 'always' },
      { seq: refused.seq, decision: 'deny' },
    ] as const) {
      let commits = 0
      const dying = vi.spyOn(before.store, 'transaction').mockImplementation(work => {
        if (commits++ > 0) throw new Error('the process is gone')
        return transaction(work)
      })
      try {
        before.click('main', seq, decision, 'ann', 'too late')
      } catch {
        // As if it had been killed after the first commit.
      }
      dying.mockRestore()
    }
    before.kill()
    const host = await open({ directory: before.directory })
    expect(host.said('family')).toEqual(['hello'])
    expect(host.store.approvals.approval(always.seq)).toMatchObject({ status: 'allowed', decidedBy: 'ann' })
    expect(host.store.approvals.rules('main')).toHaveLength(1)
    expect(host.store.approvals.approval(refused.seq)).toMatchObject({
      status: 'denied',
      decidedBy: 'ann',
      words: 'too late',
    })
  })

  test('what somebody allowed and the host then refused is not called withdrawn', async () => {
    const before = await open({ config: { groups: { family: { approvers: ['ann'] } } } })
    const { seq } = await before.want('family', 'hello')
    const { transaction } = before.store
    // By now it has as many requests open as it may have.
    await transaction(within => {
      for (let i = 1; i <= 20; i++) {
        const about = { kind: 'question', tool: 'ask_user', input: {}, reply: null } as const
        within.insertRequest({ ...about, seq: seq + i, group: 'family', createdAt: 1, expiresAt: 2 ** 52 })
      }
    })
    let commits = 0
    vi.spyOn(before.store, 'transaction').mockImplementation(work => {
      if (commits++ > 0) throw new Error('the process is gone')
      return transaction(work)
    })
    try {
      before.click('family', seq, 'allow')
    } catch {
      // As above.
    }
    before.kill()
    const host = await open({ directory: before.directory })
    expect(host.called).toEqual([])
    expect(host.status(seq)).toBe('allowed')
  })

  test('what is over by then is closed, with what it came to', async () => {
    const before = await open({ approvalMs: 50 })
    const late = await before.want('main', 'hello')
    const cancelled = await before.want('main', 'goodbye')
    const outcome: Outcome = { ok: false, error: { code: 'cancelled', message: 'x' } }
    before.store.requests.answer([{ seq: cancelled.seq, outcome }], Date.now())
    before.kill()
    while (Date.now() < late.expiresAt);
    const host = await open({ directory: before.directory })
    expect(host.status(cancelled.seq)).toBe('withdrawn')
    expect(host.click('main', late.seq, 'allow')).toMatchObject({ error: { code: 'wrong_state' } })
    await until('it is closed', () => host.status(late.seq) === 'expired')
    expect(host.said('family')).toEqual([])
    expect(host.store.approvals.open()).toEqual([])
  })

  test('what a group wanted that was removed is not done for another of its name', async () => {
    const before = await open()
    const { seq, id } = await before.want('main', 'hello')
    before.store.transaction(transaction => {
      transaction.deleteGroup('main')
      transaction.insertGroup(groupOf('main', { main: true }))
    })
    before.kill()
    const host = await open({ directory: before.directory })
    await until('it is over', () => host.sent(id).length > 0)
    expect(host.sent(id)).toMatchObject([{ ok: false, error: { code: 'cancelled' } }])
    expect(host.status(seq)).toBe('withdrawn')
    expect(host.said('family')).toEqual([])
  })

  test('what was always allowed still is', async () => {
    const before = await open()
    const { seq } = await before.want('main', 'hello')
    before.click('main', seq, 'always')
    before.kill()
    const host = await open({ directory: before.directory })
    await host.command('main', 'again', {
      type: 'send_message',
      payload: { jid: 'chat:family', text: 'hello' },
    })
    await until('it is sent', () => host.said('family').length === 2)
  })
})

test('a card that cannot be stored is none: nobody is asked, nobody allows it, and it ends by itself', async () => {
  const host = await open({ approvalMs: 100 })
  host.store.transaction(transaction => {
    // Every number that could be the card's is taken.
    for (let id = 1; id <= 20; id++) {
      transaction.insertMessage(textMessage(id, { folder: 'main', jid: 'chat:main' }, 'taken', 0))
    }
  })
  const { seq } = await host.command('main', 'r', {
    type: 'send_message',
    payload: { jid: 'chat:family', text: 'x' },
  })
  await until('it is over', () => host.sent('r').length > 0)
  expect(host.sent('r')).toMatchObject([{ error: { code: 'expired' } }])
  expect(host.status(seq)).toBeUndefined()
  expect(host.said('family')).toEqual([])
})

test('a person whom a full disk kept from being asked is asked once there is room', async () => {
  const host = await open()
  const { store } = host
  const { transaction } = store
  let failures = 0
  vi.spyOn(store, 'transaction').mockImplementation(work => {
    const looks = host.looks()
    if (looks > 0 && looks < 3) {
      failures++
      throw new StoreFailure('database or disk is full')
    }
    return transaction(work)
  })
  expect(await host.want('main')).toMatchObject({ status: 'open' })
  expect(failures).toBe(2)
})
