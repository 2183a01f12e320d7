import { join } from 'node:path'
import { createNames, post } from '@hatchway/spool'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Channel } from '../../../host/src/chat/channels/types.ts'
import type { ChannelKind, Feature } from '../../../host/src/plugins/channels/kind.ts'
import { inputId } from '../../../host/src/runs/input-box.ts'
import { until } from '../until.ts'
import { openHost, openLiveWith, type TestedKind } from './host.ts'
import type { Person, Platform, Shown } from './platform.ts'
import { inOrder, resultsOf, writeResults } from './results.ts'

/** What each platform that people add does. */
const basics = {
  status: 'says whether it is connected, and as whom',
  pairing: 'lets chats ask that nobody has registered',
  outage: 'is elsewhere, and may be away for a while',
  people: 'tells people apart',
} as const
type Ability = Feature | keyof typeof basics

/**
 * What every channel has to do, on its platform. `open` starts the platform, and is called for each test: they run side by
 * side. `missing` names what this machine lacks for it.
 */
export function channelContract(
  options: {
    open(): Promise<Platform>
    missing?: string | undefined
  } & (
    | { kind: ChannelKind; does?: undefined }
    /** of a channel that people need not add: all it does */
    | { kind: TestedKind; does: readonly Ability[] }
  ),
): void {
  const { kind, missing } = options
  const tryIt = missing === undefined || process.env.CI === 'true' ? test : test.skip
  let tried = 0
  let passed = 0
  const attempt = (name: string, work: () => Promise<void>) => {
    tried++
    tryIt(name, async () => {
      await work()
      passed++
    })
  }
  /** what people could do, in this run */
  const seen = new Set<Feature>()
  const does = (ability: Ability) =>
    options.does
      ? options.does.includes(ability)
      : ability in basics || options.kind.does.some(feature => feature === ability)
  const title = `${kind.title}${missing === undefined ? '' : ` (needs ${missing})`}`

  const isConnected = async ({ channel }: { channel: Channel }, platform?: Platform) => {
    if (!does('status')) return expect(channel.status).toBeUndefined()
    return until(async () => {
      const { isConnected, confirm } = channel.status?.() ?? {}
      if (confirm) await platform?.confirm?.(confirm)
      return isConnected === true
    })
  }

  const begin = async (
    given:
      | Partial<Parameters<typeof openHost>[0]>
      | ((platform: Platform) => Partial<Parameters<typeof openHost>[0]>) = {},
  ) => {
    const platform = await options.open()
    const { settings, direct, room } = platform
    const more = typeof given === 'function' ? given(platform) : given
    const groups = more.groups ?? [
      { folder: 'main', jid: direct, main: true },
      { folder: 'room', jid: room, requires_trigger: true },
    ]
    const openOne = async (directory?: string) => {
      const opened = await openHost({ kind, settings, groups, ...more, ...(directory && { directory }) })
      platform.meet?.(opened)
      return opened
    }
    const host = await openOne()
    onTestFinished(async () => {
      await host.stop()
      await platform.close()
    })
    await isConnected(host, platform)
    /** another process on the same directory */
    const again = async () => {
      const next = await openOne(host.directory)
      onTestFinished(() => next.stop())
      return next
    }
    const ours = async (jid: string) => (await platform.shown(jid)).filter(({ isOurs }) => isOurs)
    const arrived = async (jid: string, text: string | RegExp) => {
      const found: Shown[] = []
      await until(async () => {
        found.splice(0, found.length, ...(await ours(jid)))
        return found.some(one => (typeof text === 'string' ? one.text.includes(text) : text.test(one.text)))
      })
      return found
    }
    return { platform, host, again, ours, arrived, direct, room }
  }

  describe(title, () => {
    const attemptStatus = does('status') ? attempt : () => {}
    attemptStatus('it says who we are, and that it is connected', async () => {
      const { host, platform } = await begin()
      expect((await host.check()).length).toBeGreaterThan(2)
      expect(host.channel.status?.()).toMatchObject({ isConnected: true })
      await platform.down()
      await until(() => host.channel.status?.().isConnected === false)
      await platform.up()
      await until(() => host.channel.status?.().isConnected === true)
    })

    attempt('what is said arrives once, both ways, with who said it', async () => {
      const { platform, host, arrived, direct, room } = await begin()
      await platform.say(platform.ann, direct, 'hello there')
      await platform.say(platform.ann, room, 'to the others')
      await until(() => host.heard(direct).length + host.heard(room).length === 2)
      expect(host.heard(direct)).toMatchObject([
        { sender: platform.ann.id, senderName: platform.ann.name, text: 'hello there', status: 'waiting' },
      ])
      expect(host.heard(room)).toMatchObject([{ text: 'to the others', status: 'context' }])
      const id = host.tell(direct, 'good morning')
      expect((await arrived(direct, 'good morning')).map(({ text }) => text)).toEqual(['good morning'])
      await until(() => host.message(id)?.status === 'sent')
      // What we say ourselves is not heard.
      await platform.say(platform.ann, direct, 'and goodbye')
      await until(() => host.heard(direct).length === 2)
      expect(host.heard(direct).map(({ text }) => text)).toEqual(['hello there', 'and goodbye'])
    })

    attempt('the order is kept, both ways', async () => {
      const { platform, host, ours, direct } = await begin()
      const said = Array.from({ length: 12 }, (_, i) => `number ${i}`)
      for (const text of said) await platform.say(platform.ann, direct, text)
      for (const text of said) host.tell(direct, text)
      await until(() => host.heard(direct).length === said.length)
      expect(host.heard(direct).map(({ text }) => text)).toEqual(said)
      await until(async () => (await ours(direct)).length === said.length)
      expect((await ours(direct)).map(({ text }) => text)).toEqual(said)
    })

    attempt(
      'what was said while nobody was there, or while the platform was away, arrives once',
      async () => {
        const { platform, host, again, arrived, direct } = await begin()
        await platform.say(platform.ann, direct, 'first')
        await until(() => host.heard(direct).length === 1)
        await host.stop()
        if (does('absence')) await platform.say(platform.ann, direct, 'while you were away')
        const next = await again()
        await isConnected(next)
        await platform.say(platform.ann, direct, 'now you are back')
        const expected = ['first', ...(does('absence') ? ['while you were away'] : []), 'now you are back']
        await until(() => next.heard(direct).length === expected.length)
        expect(next.heard(direct).map(({ text }) => text)).toEqual(expected)

        await platform.down()
        const id = next.tell(direct, 'said into the void')
        if (does('outage')) await until(() => next.message(id)?.error !== null)
        await platform.up()
        expect((await arrived(direct, 'void')).filter(({ text }) => text.includes('void'))).toHaveLength(1)
      },
    )

    const attemptAbsence = does('absence') ? attempt : () => {}
    attemptAbsence(
      'what a killed host had received and not stored is received again, and what it had stored is not',
      async () => {
        const { platform, host, again, direct } = await begin()
        await platform.say(platform.ann, direct, 'kept')
        await until(() => host.heard(direct).length === 1)
        await host.kill()
        await platform.say(platform.ann, direct, 'not kept yet')
        const next = await again()
        await until(() => next.heard(direct).length === 2)
        await platform.repeat?.()
        await platform.say(platform.ann, direct, 'last')
        await until(() => next.heard(direct).some(({ text }) => text === 'last'))
        expect(next.heard(direct).map(({ text }) => text)).toEqual(['kept', 'not kept yet', 'last'])
        seen.add('absence')
      },
    )

    attempt(
      'an answer under way when the host is killed is delivered by the next, twice at most',
      async () => {
        const { platform, host, again, direct, ours } = await begin()
        for (let i = 0; i < 5; i++) host.tell(direct, `part ${i}`)
        await host.kill()
        const next = await again()
        await until(() => next.store.countPending() === 0)
        const texts = (await ours(direct)).map(({ text }) => text)
        for (let i = 0; i < 5; i++) {
          const times = texts.filter(text => text === `part ${i}`).length
          expect(times).toBeGreaterThan(0)
          expect(times).toBeLessThan(platform.dropsRepeats ? 2 : 3)
        }
      },
    )

    attempt('an answer under way when the host is stopped is delivered once', async () => {
      const { host, again, direct, ours } = await begin()
      const said = Array.from({ length: 8 }, (_, i) => `part ${i}`)
      for (const text of said) host.tell(direct, text)
      // Some have arrived, and the next is being sent.
      await until(async () => (await ours(direct)).length > 0)
      await host.stop()
      const next = await again()
      await until(() => next.store.countPending() === 0)
      expect((await ours(direct)).map(({ text }) => text)).toEqual(said)
    })

    attempt('what is given twice, or too late, is taken once', async () => {
      const { platform, host, direct } = await begin()
      const texts = () => host.heard(direct).map(({ text }) => text)
      await platform.say(platform.ann, direct, 'first')
      await until(() => host.heard(direct).length === 1)
      await platform.repeat?.()
      await platform.swap?.(platform.ann, direct, ['second', 'third'])
      await platform.repeat?.()
      await platform.say(platform.ann, direct, 'last')
      await until(() => texts().includes('last'))
      const between = platform.swap ? ['third', 'second'] : []
      expect(texts()).toEqual(['first', ...between, 'last'])
    })

    attempt('a long text is split where it can be, and whole', async () => {
      const { host, ours, direct } = await begin()
      const limit = Math.min(host.channel.messageLimit, 5000)
      const words = Array.from({ length: Math.ceil((limit * 2) / 6) }, (_, i) =>
        `w${i % 1000}`.padEnd(5, 'x'),
      )
      const id = host.tell(direct, words.join(' '))
      await until(() => host.message(id)?.status === 'sent')
      const text = (await ours(direct)).map(one => one.text).join(' ')
      expect(text.split(/\s+/).filter(Boolean)).toEqual(words)
    })

    attempt('whatever is in a text, it arrives', async () => {
      const { host, ours, direct } = await begin()
      const odd = [
        'a *b _c* d_ `e [f](',
        '<b>bold & "quoted"</b> <script>alert(1)</script>',
        '**bold** and _soft_ and `code` and [a link](https://example.org/?a=1&b=2)',
        '```js\nconst a = "<b>" // *not bold*\n```',
        'back\\slash, {braces}, ~tilde~, |pipes||, > not a quote, # not a title, 1. no list, - nor this!',
        '@everyone @here <@123> <!channel> @room',
        '😀 👩‍👩‍👧 ünï ‮reversed‬ \u200bzero',
      ]
      const ids = odd.map(text => host.tell(direct, text))
      await until(() => ids.every(id => host.message(id)?.status === 'sent'))
      const shown = await ours(direct)
      expect(shown).toHaveLength(odd.length)
      expect(shown[1]?.text).toContain('<script>alert(1)</script>')
      expect(shown[2]?.text).toContain('bold')
      expect(shown[3]?.text).toContain('const a = "<b>" // *not bold*')
    })

    attempt('a chat that nobody has registered is not heard, and may ask once where chats may', async () => {
      const { platform, host, arrived, direct, room } = await begin({
        groups: [{ folder: 'main', jid: 'web:main', main: true }],
      })
      await platform.say(platform.ann, direct, 'let me in')
      if (does('pairing')) await arrived(direct, 'operator')
      await platform.say(platform.ann, direct, 'please')
      await platform.say(platform.ann, room, 'not to the assistant')
      await until(() => host.refused() >= 2)
      expect(host.heard(direct)).toEqual([])
      const asked = {
        ...{ jid: direct, sender: platform.ann.id, senderName: platform.ann.name },
        ...{ status: 'open', isGroup: false },
      }
      expect(host.store.chats.pairings()).toMatchObject(does('pairing') ? [asked] : [])
      if (does('pairing')) expect(host.store.chats.known(direct)).toBeDefined()
      else expect(host.store.messages({})).toEqual([])
    })

    attempt('only those on the list are heard', async () => {
      const { platform, host, room } = await begin({ config: { groups: { room: { senders: ['nobody'] } } } })
      await platform.say(platform.stranger, room, 'let me in', { mention: true })
      await until(() => host.refused() > 0)
      expect(host.heard(room)).toEqual([])
    })

    const attemptPeople = does('people') ? attempt : () => {}
    attemptPeople('whoever passes for somebody else is not heard as them', async () => {
      const { platform, host, room } = await begin(({ ann }) => ({
        config: { groups: { room: { senders: [ann.id] } } },
      }))
      const { ann, stranger } = platform
      await (platform.forge?.('I am Ann') ??
        platform.say({ ...stranger, name: ann.name }, room, 'I am Ann', { mention: true }))
      // What is said in a chat is taken in its order.
      await platform.say(ann, room, 'no, I am', { mention: true })
      await until(() => host.heard(room).length > 0)
      expect(host.heard(room)).toMatchObject([{ sender: ann.id, text: expect.stringContaining('no, I am') }])
    })

    attemptPeople('a stranger answers no question, whatever they press or say', async () => {
      const { platform, host, arrived, room } = await begin(({ ann }) => ({
        config: { groups: { room: { senders: [ann.id] } } },
      }))
      await host.command('room', 'q1', {
        type: 'ask_user',
        payload: {
          questions: [{ question: 'Tea or coffee?', options: [{ label: 'Tea' }, { label: 'Coffee' }] }],
        },
      })
      host.kick()
      const [card] = await arrived(room, 'Tea or coffee?')
      const answer = (by: Person, option: number, label: string) =>
        does('buttons')
          ? platform.press?.(by, room, card?.id ?? '', label)
          : platform.say(by, room, String(option), { mention: true })
      await answer(platform.stranger, 1, 'Tea')
      await until(() => host.refused() > 0)
      expect(host.sent('q1')).toEqual([])
      await answer(platform.ann, 2, 'Coffee')
      await until(() => host.sent('q1').length === 1)
      expect(host.sent('q1')).toMatchObject([{ ok: true, result: { answers: [{ answer: 'Coffee' }] } }])
    })

    attemptPeople('what needs a person is decided by those who may, and by nobody else', async () => {
      const platform = await options.open()
      onTestFinished(platform.close)
      const { direct, room, ann, stranger } = platform
      const host = await openLiveWith(kind, platform.settings, {
        config: { groups: { main: { approvers: [ann.id] } } },
        groups: [
          { folder: 'main', jid: room, main: true },
          { folder: 'direct', jid: direct },
        ],
      })
      platform.meet?.(host)
      await isConnected(host, platform)
      const { store, live } = host
      store.transaction(transaction =>
        transaction.addTaint('main', 'session', { corrupted: true, secret: true }, 'a test', Date.now()),
      )
      const payload = { jid: direct, text: 'the *plan*' }
      post(
        join(live.layout.ipc, 'main', 'tasks'),
        JSON.stringify({ version: 1, id: 'r-1', type: 'send_message', payload }),
        { name: createNames()() },
      )
      const ours = async (jid: string) => (await platform.shown(jid)).filter(({ isOurs }) => isOurs)
      const words = async () => (await ours(room)).map(({ text }) => text).join('\n')
      // To the letter: nothing that an agent writes is markup in what people decide about.
      await until(async () => (await words()).includes('the *plan*'))
      const [card] = await ours(room)
      const isPressed = card?.buttons?.includes('Allow')
      await until(async () => isPressed || /^deny /m.test(await words()))
      const code = /^allow ([\w-]+)/m.exec(await words())?.[1]
      const status = () => store.approvals.list({ limit: 1 })[0]?.status
      const allow = (by: Person) =>
        isPressed
          ? platform.press?.(by, room, card?.id ?? '', 'Allow')
          : platform.say(by, room, `allow ${code}`, { mention: true })
      await allow(stranger)
      // Whoever presses in vain is told alone; whoever says it, in the chat.
      await until(async () => host.refused() > 0 || (await words()).includes('may not decide'))
      expect(status()).toBe('open')
      expect(await ours(direct)).toEqual([])
      await allow(ann)
      await until(async () => (await ours(direct)).length > 0)
      expect(status()).toBe('allowed')
    })

    attempt('nothing that the library does is left on the process', async () => {
      // Not `exit`: the logger has a listener there until its memory is collected, whenever that is.
      const events = ['uncaughtException', 'unhandledRejection', 'SIGINT', 'SIGTERM'] as const
      const before = events.map(event => process.listenerCount(event))
      const { host } = await begin()
      await host.stop()
      expect(events.map(event => process.listenerCount(event))).toEqual(before)
    })

    attempt('a mention calls the assistant, and what is answered is quoted', async () => {
      const { platform, host, arrived, room } = await begin()
      const id = await platform.say(platform.ann, room, 'how are you', { mention: true })
      await until(() => host.heard(room).length === 1)
      expect(host.heard(room)).toMatchObject([{ status: 'waiting' }])
      host.tell(room, 'very well')
      const [ours] = await arrived(room, 'very well')
      await platform.say(platform.ann, room, 'glad to hear it', { replyTo: ours?.id ?? '' })
      await until(() => host.heard(room).length === 2)
      const [, answer] = host.heard(room)
      if (!does('quotes')) return
      expect(answer).toMatchObject({ status: 'waiting', quote: { id: ours?.id } })
      const [first] = host.heard(room)
      const payload = { text: 'as I said', reply_to: inputId(first?.id ?? 0) }
      await host.command('room', undefined, { type: 'send_message', payload })
      host.kick()
      const quoting = (await arrived(room, 'as I said')).find(({ text }) => text.includes('as I said'))
      // Where messages are answered in threads, that is the quote.
      expect([quoting?.replyTo, quoting?.thread]).toContain(id)
      seen.add('quotes')
    })

    attempt('a question is answered by a button where there are any, and in words elsewhere', async () => {
      const { platform, host, arrived, ours, direct } = await begin()
      await host.command('main', 'q1', {
        type: 'ask_user',
        payload: {
          questions: [{ question: 'Tea or coffee?', options: [{ label: 'Tea' }, { label: 'Coffee' }] }],
        },
      })
      host.kick()
      const [card] = await arrived(direct, 'Tea or coffee?')
      if (does('buttons')) {
        expect(card?.buttons).toEqual(['Tea', 'Coffee'])
        await platform.press?.(platform.ann, direct, card?.id ?? '', 'Coffee')
        await until(async () =>
          (await ours(direct)).some(one => one.text.includes('Coffee (') && !one.buttons?.length),
        )
        seen.add('buttons')
      } else await platform.say(platform.ann, direct, '2')
      await until(() => host.sent('q1').length === 1)
      expect(host.sent('q1')).toMatchObject([{ ok: true, result: { answers: [{ answer: 'Coffee' }] } }])
      // A button that is pressed once more, or in an old card, changes nothing.
      await platform.press?.(platform.ann, direct, card?.id ?? '', 'Tea').catch(() => {})
      expect(host.sent('q1')).toHaveLength(1)
    })

    const attemptThread = does('threads') ? attempt : () => {}
    attemptThread('an answer goes to the thread it belongs to', async () => {
      const { platform, host, arrived, room } = await begin()
      const id = await platform.say(platform.ann, room, 'in a thread, please', {
        mention: true,
        thread: 'new',
      })
      await until(() => host.heard(room).length === 1)
      const [said] = host.heard(room)
      expect(said?.thread).toBeDefined()
      host.store.agents.give([said?.id ?? 0], 'run-1')
      host.tell(room, 'here it is')
      const shown = await arrived(room, 'here it is')
      expect(shown.find(({ text }) => text === 'here it is')?.thread).toBe(said?.thread)
      expect(id).not.toBe('')
      seen.add('threads')
    })

    const attemptFiles = does('files') ? attempt : () => {}
    attemptFiles('files go both ways', async () => {
      const { platform, host, arrived, direct } = await begin()
      const content = Buffer.from([0, 1, 2, 255, 254, 10, 13])
      await platform.say(platform.ann, direct, 'look at this', { file: { name: 'photo.png', content } })
      await until(() => host.heard(direct).length === 1)
      const [said] = host.heard(direct)
      const [file] = said?.attachments ?? []
      expect(file).toMatchObject({ name: 'photo.png', bytes: content.length })
      expect(await host.chats.files?.read(file?.id ?? '')).toEqual(content)
      host.tell(direct, 'and back', {
        attachments: [{ ...(file ?? { id: '', name: '', type: '', bytes: 0 }) }],
      })
      await arrived(direct, 'and back')
      await until(async () =>
        (await platform.shown(direct)).some(one => one.isOurs && one.file?.bytes === content.length),
      )
      seen.add('files')
    })

    attempt('reactions, changes and what is taken back reach the agent', async () => {
      const { platform, host, arrived, direct } = await begin()
      const id = await platform.say(platform.ann, direct, 'buy bread')
      await until(() => host.heard(direct).length === 1)
      if (does('edits')) {
        await platform.edit?.(platform.ann, direct, id, 'buy rolls')
        await until(() => host.heard(direct)[0]?.text === 'buy rolls')
        seen.add('edits')
      }
      host.tell(direct, '👍', { kind: 'reaction', messageId: null })
      if (does('reactions')) {
        await until(async () => (await platform.shown(direct)).some(one => one.reactions?.includes('👍')))
        const told = host.tell(direct, 'bought')
        // Until it is noted as sent, the host does not know which message is meant.
        await until(() => host.message(told)?.status === 'sent')
        const ours = (await arrived(direct, 'bought')).find(({ text }) => text === 'bought')
        await platform.react?.(platform.ann, direct, ours?.id ?? '', '🎉')
        await until(() => host.notes().some(({ text }) => text.includes('🎉') && text.includes('bought')))
        seen.add('reactions')
      }
      if (does('deletions')) {
        await platform.remove?.(platform.ann, direct, id)
        await until(() => host.heard(direct)[0]?.text === '[taken back]')
        seen.add('deletions')
      }
    })

    attempt('a platform that is busy or broken for a while gets it once', async () => {
      const { platform, host, arrived, direct } = await begin()
      for (const how of ['limit', 'failure'] as const) {
        platform.refuse?.(2, how)
        const id = host.tell(direct, `after a ${how}`)
        await until(() => host.message(id)?.status === 'sent')
        expect((await arrived(direct, how)).filter(({ text }) => text.includes(how))).toHaveLength(1)
      }
    })

    attempt(
      'an agent at work is seen where messages can change, and its answer takes that place',
      async () => {
        const { host, arrived, ours, direct } = await begin({ config: { agents: { progressMs: 1 } } })
        if (!host.channel.edit) return
        const { progress } = host.chats
        progress.working({ folder: 'main', jid: direct }, 'mcp__calendar__list_events')
        await arrived(direct, 'Working: list events')
        const shown = host.store.openProgress('main')
        const id = host.tell(direct, 'tomorrow at nine', { replaces: shown?.id })
        progress.over('main', true)
        await until(() => host.message(id)?.status === 'sent' && host.store.countPending() === 0)
        expect((await ours(direct)).map(({ text }) => text)).toEqual(['tomorrow at nine'])
      },
    )

    const attemptTyping = does('typing') ? attempt : () => {}
    attemptTyping('somebody is seen to be typing', async () => {
      const { platform, host, direct } = await begin()
      host.chats.typing(direct, true)
      await until(async () => (await platform.isTyping?.(direct)) === true)
      seen.add('typing')
      host.chats.typing(direct, false)
    })

    attempt('code that is too long for one message is code in each, and what follows is not', async () => {
      const { host, ours, direct } = await begin()
      const limit = Math.min(host.channel.messageLimit, 10_000)
      const end = 'And that was **all** of it.'
      const code = Array.from(
        { length: Math.ceil((limit * 1.4) / 45) },
        (_, i) => `const v${i} = "_not soft_ **not bold** [no link](x)"`,
      )
      const ids = [end, `Look:\n\n\`\`\`js\n${code.join('\n')}\n\`\`\`\n\n${end}`].map(text =>
        host.tell(direct, text),
      )
      await until(() => ids.every(id => host.message(id)?.status === 'sent'))
      const shown = async () => (await ours(direct)).map(({ text }) => text)
      await until(async () => (await shown()).slice(1).some(text => text.includes('of it.')))
      const [alone, ...parts] = await shown()
      const lines = parts.flatMap(part => part.split(/\r?\n/))
      expect(lines.filter(line => line.includes('const v'))).toEqual(code)
      expect(lines.filter(line => line.includes('of it.'))).toEqual([alone])
    })

    // The last: it compares what the others have seen, unless one of them was left out or has failed.
    tryIt('what people could do here is what the documentation says', context => {
      if (passed < tried) return context.skip()
      if (process.env.HATCHWAY_RESULTS === 'write') writeResults(kind.name, seen)
      expect(resultsOf(kind.name)).toEqual(inOrder(seen))
    })
  })
}
