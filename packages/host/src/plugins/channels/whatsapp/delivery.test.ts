import { describe, expect, test } from 'vitest'
import { alone, begin, connected, outgoing, part } from '../../../../../testing/src/channels/whatsapp/rig.ts'
import { until } from '../../../../../testing/src/until.ts'
import type { ChannelHost } from '../../../chat/channels/types.ts'

describe('What agents say on WhatsApp', () => {
  test('has the signs of WhatsApp, mentions nobody, and has no preview; an approval is shown to the letter', async () => {
    const { platform, host, sent, direct } = await begin()
    await sent(
      host.tell(direct, '# Title\n\n**bold** _soft_ ~~gone~~ `code` [a](https://example.org)\n\n> said'),
    )
    await sent(host.tell(direct, '@everyone @491700000501 @all'))
    await sent(host.tell(direct, 'Allow? *really* ```x``` `y`', { kind: 'approval' }))
    expect(platform.sent(direct).map(one => one.extendedTextMessage?.text)).toEqual([
      '*Title*\n\n*bold* _soft_ ~gone~ `code` a (https://example.org)\n\n> said',
      '@everyone @491700000501 @all',
      '```Allow? *really* `\u200b`\u200b`x`\u200b`\u200b` `y````',
    ])
    for (const { extendedTextMessage: text } of platform.sent(direct)) {
      expect(text?.contextInfo?.mentionedJid ?? []).toEqual([])
      expect(text?.contextInfo?.nonJidMentions ?? 0).toBe(0)
      expect(text?.matchedText ?? '').toBe('')
    }
    expect((await platform.shown(direct)).at(-1)?.text).toBe('Allow? *really* ```x``` `y`')
  })

  test('goes out with pictures and files, and goes on after what has arrived when one fails', async () => {
    const { platform, host, sent, ours, direct, ann } = await begin()
    const png = Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
      'base64',
    )
    await platform.say(ann, direct, 'a', { file: { name: 'dot.png', content: png } })
    await platform.say(ann, direct, 'b', { file: { name: 'b.txt', content: Buffer.from('b') } })
    await until(() => host.heard(direct).length === 2)
    const attachments = host.heard(direct).flatMap(row => row.attachments ?? [])
    const missing = { id: 'no-such-file', name: 'gone.txt', type: 'text/plain', bytes: 1 }
    platform.refuse(1, 'failure')
    await sent(host.tell(direct, 'both', { attachments: [...attachments, missing] }))
    expect((await ours(direct)).map(({ text, file }) => file?.name ?? text)).toEqual([
      'both',
      'image',
      'b.txt',
      '[gone.txt is no longer kept.]',
    ])
  })

  test('answers a message, and reacts to one in a group', async () => {
    const { platform, host, sent, ours, room, ann } = await begin()
    const id = await platform.say(ann, room, 'thanks')
    await until(() => host.heard(room).length === 1)
    const reference = host.heard(room)[0]?.externalId ?? ''
    await sent(host.tell(room, 'you are welcome', { replyTo: reference }))
    expect(await ours(room)).toMatchObject([{ text: 'you are welcome', replyTo: id }])
    expect(platform.sent(room)[0]?.extendedTextMessage?.contextInfo).toMatchObject({
      participant: platform.phone(ann).lid,
      quotedMessage: { conversation: 'thanks' },
    })
    await sent(host.tell(room, '❤️', { kind: 'reaction', messageId: null }))
    expect((await platform.shown(room))[0]?.reactions).toEqual(['❤️'])
  })

  test('is changed for a while, and is said once more when WhatsApp would not show the change', async () => {
    let at = 1_000_000
    const { platform, channel } = await alone({}, { now: () => at })
    await connected(platform, channel)
    const { direct } = platform
    const id = String(await channel.send(outgoing(direct, 'working'), part))
    await channel.edit?.({ jid: direct, id }, outgoing(direct, 'half done', { id: 2, kind: 'edit' }))
    at += 15 * 60_000
    await channel.edit?.({ jid: direct, id }, outgoing(direct, 'finished', { id: 3, kind: 'edit' }))
    expect((await platform.shown(direct)).map(({ text }) => text)).toEqual(['half done', 'finished'])
  })

  test('that is sent again has the same id, which nobody else can foresee', async () => {
    const memory = new Map<string, string | undefined>()
    const remembering: Partial<ChannelHost> = {
      recall: key => memory.get(key),
      remember: (key, value) => void memory.set(key, value),
    }
    const { platform, channel, another } = await alone(remembering)
    await connected(platform, channel)
    const first = await channel.send(outgoing(platform.direct, 'once'), part)
    await channel.disconnect?.()
    const next = await another()
    await connected(platform, next)
    expect(await next.send(outgoing(platform.direct, 'once'), part)).toBe(first)
    expect(await platform.shown(platform.direct)).toHaveLength(1)
    expect(first).toMatch(/^3EB0[0-9A-F]{18}$/)
    memory.clear()
    expect(await next.send(outgoing(platform.direct, 'once'), part)).not.toBe(first)
  })

  test.each([
    ['403', 'Let it into the group again'],
    ['463', 'Let the other person write first'],
  ])('and is refused for good (%s) has failed at once', async (error, words) => {
    const { platform, host, sent, room } = await begin()
    platform.refusals.push({ error })
    expect(await sent(host.tell(room, 'hello?'))).toMatchObject({
      status: 'failed',
      attempts: 1,
      error: expect.stringContaining(words),
    })
  })

  test('in a group that has put us out fails, whether or not we knew the group', async () => {
    const { platform, host, sent, room } = await begin()
    const group = platform.groups.get('120363000000000001@g.us')
    if (group) group.hasUs = false
    for (const jid of [room, 'whatsapp:120363000000000009@g.us'])
      expect(await sent(host.tell(jid, 'hello?'))).toMatchObject({
        status: 'failed',
        attempts: 1,
        error: expect.stringContaining('Let it into the group again'),
      })
  })

  test('waits as long as WhatsApp asks for, which is no failed attempt', async () => {
    const { platform, host, sent, direct } = await begin()
    platform.refusals.push({ error: '429', backoff: '2' })
    const id = host.tell(direct, 'patience')
    await until(() => host.message(id)?.error !== null)
    expect(host.channel.status?.().limitedUntil).toBeGreaterThan(Date.now())
    expect(await sent(id)).toMatchObject({ status: 'sent', attempts: 2 })
  })
})
