import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import {
  alone,
  begin,
  connected,
  outgoing,
  type Platform,
  part,
} from '../../../../../testing/src/channels/whatsapp/rig.ts'
import { until } from '../../../../../testing/src/until.ts'
import type { Incoming } from '../../../chat/channels/types.ts'

describe('What people said on WhatsApp', () => {
  const receiptsOf = ({ server }: Platform) =>
    server.receipts.map(({ tag, attrs }) => [tag, attrs.id, attrs.type, attrs.error].filter(Boolean))

  test('is confirmed only after it is stored, and is never marked as read', async () => {
    const stored = Promise.withResolvers<void>()
    const heard: Incoming[] = []
    const { platform, channel } = await alone({
      receive: async message => {
        heard.push(message)
        await stored.promise
        return { ok: true, id: 1, status: 'waiting' }
      },
    })
    await connected(platform, channel)
    const id = await platform.say(platform.ann, platform.direct, 'keep this')
    await until(() => heard.length === 1)
    expect(receiptsOf(platform)).toEqual([])
    stored.resolve()
    await until(() => platform.server.pending.length === 0)
    expect(receiptsOf(platform)).toEqual([['receipt', id, 'inactive']])
  })

  test('comes again until the host could store it, and can still be read', async () => {
    let attempts = 0
    const { platform, channel } = await alone({
      receive: async () => {
        if (++attempts < 3) throw new Error('the disk is full')
        return { ok: true, id: 1, status: 'waiting' }
      },
    })
    await connected(platform, channel)
    const id = await platform.say(platform.ann, platform.direct, 'keep this')
    await until(() => attempts === 1)
    await until(() => channel.status?.().lastError?.includes('the disk is full') === true)
    await until(() => platform.server.pending.length === 0)
    expect(attempts).toBe(3)
    expect(receiptsOf(platform)).toEqual([['receipt', id, 'inactive']])
  })

  test('and was stored when the host was killed comes again under the same id', async () => {
    const heard: Incoming[] = []
    const stored = Promise.withResolvers<void>()
    const { platform, channel, another } = await alone({
      receive: async message => {
        heard.push(message)
        await stored.promise
        return { ok: true, id: 1, status: 'waiting' }
      },
    })
    await connected(platform, channel)
    await platform.say(platform.ann, platform.direct, 'keep this')
    await until(() => heard.length === 1)
    await channel.disconnect?.()
    stored.resolve()
    const next = await another({
      receive: async message => {
        heard.push(message)
        return { ok: true, id: undefined, status: 'waiting' }
      },
    })
    await connected(platform, next)
    await until(() => heard.length === 2)
    expect(heard[1]).toEqual(heard[0])
    await until(() => platform.server.pending.length === 0)
  })

  test('and arrives while an answer is being sent takes nothing from what follows', async () => {
    const heard: string[] = []
    const { platform, channel } = await alone({
      receive: async ({ text }) => ({ ok: true, id: heard.push(text), status: 'waiting' }),
    })
    await connected(platform, channel)
    const { direct, ann, server } = platform
    const switchOn = platform.switchOff(ann)
    const { asked, release } = server.linkComputer()
    const answer = channel.send(outgoing(direct, 'hello'), part)
    await asked
    await platform.say(ann, direct, 'one')
    await until(() => heard.length === 1)
    release()
    await answer
    await platform.say(ann, direct, 'two')
    await until(() => server.pending.length === 0)
    await switchOn()
    await platform.say(ann, direct, 'three')
    await until(() => heard.length === 3)
    expect(heard).toEqual(['one', 'two', 'three'])
    expect(platform.resent).toEqual([])
    expect((await platform.shown(direct)).filter(({ isOurs }) => isOurs)).toMatchObject([{ text: 'hello' }])
  })

  test('and is being stored while an answer is sent takes nothing from what follows', async () => {
    const heard: string[] = []
    const stored = Promise.withResolvers<void>()
    const { platform, channel } = await alone({
      async receive({ text }) {
        const id = heard.push(text)
        if (text === 'two') await stored.promise
        return { ok: true, id, status: 'waiting' }
      },
    })
    await connected(platform, channel)
    const { direct, ann } = platform
    await platform.say(ann, direct, 'one')
    await platform.say(ann, direct, 'two')
    await until(() => heard.length === 2)
    await channel.send(outgoing(direct, 'hello'), part)
    stored.resolve()
    for (const text of ['three', 'four']) {
      await platform.say(ann, direct, text)
      await until(() => heard.includes(text))
    }
    expect(heard).toEqual(['one', 'two', 'three', 'four'])
    expect(platform.resent).toEqual([])
  })

  test('and cannot be read is sent again by the phone, with other keys if need be', async () => {
    const heard: string[] = []
    const receive = async ({ text }: Incoming) =>
      ({ ok: true, id: heard.push(text), status: 'waiting' }) as const
    const { platform, channel, folder, another } = await alone({ receive })
    await connected(platform, channel)
    const { direct, room, ann } = platform
    await channel.send(outgoing(direct, 'hello'), part)
    await platform.say(ann, direct, 'one')
    await platform.say(ann, room, 'two')
    await until(() => platform.server.pending.length === 0)
    await channel.disconnect?.()
    const database = new DatabaseSync(join(folder, 'session.db'))
    database.exec("DELETE FROM keys WHERE type IN ('session', 'sender-key')")
    database.close()
    await connected(platform, await another())
    const ids = [await platform.say(ann, direct, 'three'), await platform.say(ann, room, 'four')]
    await until(() => heard.length === 4)
    expect(heard.toSorted()).toEqual(['four', 'one', 'three', 'two'])
    expect(new Set(platform.resent)).toEqual(new Set(ids))
    await until(() => platform.server.pending.length === 0)
  })

  test('in a group comes from a number, though the group hides it', async () => {
    const { platform, host, room, ann } = await begin()
    await platform.say(ann, room, 'how are you', { mention: true })
    platform.address('phone')
    await platform.say(ann, room, 'and you', { mention: true })
    await until(() => host.heard(room).length === 2)
    expect(host.heard(room)).toMatchObject([
      { text: 'how are you', sender: ann.id, senderName: 'Ann', status: 'waiting' },
      { text: 'and you', sender: ann.id, status: 'waiting' },
    ])
    expect(host.store.chats.known(room)).toMatchObject({ name: 'The others', isGroup: true })
    expect(await host.channel.chats?.()).toEqual([{ jid: room, name: 'The others', isGroup: true }])
    await platform.rename(room, 'All of us')
    await until(() => host.store.chats.known(room)?.name === 'All of us')
  })

  test('by somebody whose number is not told moves to the number once it is', async () => {
    const lid = 'whatsapp:70000000000501@lid'
    const { platform, host, direct, ann, sent, ours } = await begin({
      addressing: 'lid alone',
      groups: [{ folder: 'ann', jid: lid, main: true }],
    })
    await platform.say(ann, lid, 'who am I')
    await until(() => host.heard(lid).length === 1)
    expect(host.heard(lid)).toMatchObject([{ sender: '70000000000501@lid', senderName: 'Ann' }])
    expect(await sent(host.tell(lid, 'I do not know'))).toMatchObject({ status: 'sent' })
    platform.address('lid')
    await platform.say(ann, lid, 'it is me')
    await until(() => host.heard(direct).length === 1)
    expect(host.heard(direct)).toMatchObject([{ sender: ann.id, text: 'it is me' }])
    expect(host.store.group('ann')?.jid).toBe(direct)
    await sent(host.tell(direct, 'so I see'))
    expect((await ours(direct)).map(({ text }) => text)).toEqual(['I do not know', 'so I see'])
  })

  test('by the owner of the account is heard only where they write to themselves', async () => {
    const own = { id: '491700000100', name: 'Owner' }
    const self = `whatsapp:${own.id}`
    const { platform, host, direct, ann } = await begin({
      settings: { own: 'yes' },
      groups: [{ folder: 'main', jid: self, main: true }],
    })
    expect(host.channel.pairs).toBe(false)
    const { lid } = platform.owner
    const message = (text: string) => ({ deviceSentMessage: { message: { conversation: text } } })
    await platform.post(own, self, message('to Ann'), { recipient: platform.phone(ann).lid })
    await platform.post(own, self, message('to myself'), { recipient: lid })
    await platform.say(ann, direct, 'hello you')
    await until(() => host.heard(self).length === 1 && host.chats.inbound.counts().refused === 1)
    expect(host.heard(self)).toMatchObject([{ text: 'to myself', sender: own.id }])
    expect(host.store.chats.pairings()).toEqual([])
    expect(await platform.shown(direct)).toHaveLength(1)
  })

  test('may be a voice, a place, a contact or a poll', async () => {
    const { platform, host, direct, ann } = await begin()
    const content = Buffer.concat([Buffer.from('OggS'), Buffer.alloc(40)])
    const audioMessage = {
      ...(await platform.upload('audio', content)),
      ptt: true,
      mimetype: 'audio/ogg; codecs=opus',
    }
    await platform.post(ann, direct, { audioMessage })
    await platform.post(ann, direct, { locationMessage: { degreesLatitude: 52.5, degreesLongitude: 13.5 } })
    await platform.post(ann, direct, {
      contactMessage: { displayName: 'Bob', vcard: 'BEGIN:VCARD\nTEL;waid=1:+1 555 0100\nEND:VCARD' },
    })
    await platform.post(ann, direct, {
      pollCreationMessageV3: { name: 'Tea?', options: [{ optionName: 'Yes' }, { optionName: 'No' }] },
    })
    await until(() => host.heard(direct).length === 4)
    expect(host.heard(direct)).toMatchObject([
      {
        text: '',
        attachments: [{ type: 'audio/ogg', bytes: 44, name: expect.stringMatching(/^voice-\w+\.ogg$/) }],
      },
      { text: '[location: 52.5, 13.5]' },
      { text: '[contact: Bob +1 555 0100]' },
      { text: '[poll: Tea? (Yes, No)]' },
    ])
  })

  test('has files that are fetched from WhatsApp alone, whatever address they name, and only from those who are heard', async () => {
    const { platform, host, room, direct, ann } = await begin({
      config: { groups: { room: { senders: ['491700000501'] } } },
    })
    const file = await platform.upload('document', Buffer.from('hello'))
    const post = (more: object) =>
      platform.post(ann, direct, {
        documentMessage: { ...file, fileName: 'a.txt', caption: 'look', ...more },
      })
    await platform.post(platform.stranger, room, { documentMessage: { ...file, caption: 'open this' } })
    await until(() => host.chats.inbound.counts().refused > 0)
    expect(platform.media.asked).toEqual([])
    await post({ directPath: '@127.0.0.1:9/steal' })
    await post({ directPath: '.evil.example/steal' })
    await post({ directPath: '', url: `https://evil.example${file.directPath}` })
    await until(() => host.heard(direct).length === 3)
    expect(platform.media.asked).toEqual([file.directPath])
    expect(host.heard(direct).map(({ text, attachments }) => [text, attachments?.length])).toEqual([
      ['look', undefined],
      ['look', undefined],
      ['look', 1],
    ])
  })

  test('arrives in words with the reason, where its file is gone or damaged', async () => {
    const { platform, host, direct, ann } = await begin()
    const file = await platform.upload('document', Buffer.from('hello'))
    const post = (more: object) =>
      platform.post(ann, direct, {
        documentMessage: { ...file, fileName: 'a.txt', caption: 'look', ...more },
      })
    await post({ directPath: '/gone' })
    await post({ fileSha256: Buffer.alloc(32, 1) })
    await until(() => host.heard(direct).length === 2)
    expect(host.heard(direct).map(({ text }) => text)).toEqual([
      expect.stringMatching(/^look\n\[a\.txt was not taken: .+\]$/),
      'look\n[a.txt was not taken: it has arrived damaged]',
    ])
  })

  test('cannot be changed by somebody else, and nothing else that apps exchange is heard', async () => {
    const { platform, host, room, ann } = await begin()
    const id = await platform.say(ann, room, 'the truth')
    await until(() => host.heard(room).length === 1)
    await platform.edit(platform.stranger, room, id, 'a lie')
    await platform.remove(platform.stranger, room, id)
    const { HISTORY_SYNC_NOTIFICATION } = platform.library.proto.Message.ProtocolMessage.Type
    const historySyncNotification = { syncType: 3, directPath: '/history', mediaKey: Buffer.alloc(32) }
    await platform.post(platform.stranger, room, {
      protocolMessage: { type: HISTORY_SYNC_NOTIFICATION, historySyncNotification },
    })
    await platform.post(ann, room, { reactionMessage: { key: { id, fromMe: true }, text: '' } })
    await platform.say(ann, room, 'the whole truth')
    await until(() => host.heard(room).length === 2)
    expect(host.heard(room).map(({ text }) => text)).toEqual(['the truth', 'the whole truth'])
    expect(host.notes()).toEqual([])
    expect(platform.media.asked).toEqual([])
  })

  test('and is broken holds nothing up', async () => {
    const { platform, host, direct, ann } = await begin()
    const { since } = host.channel.status?.() ?? {}
    await platform.post(platform.stranger, direct, Buffer.from([255, 255, 255, 255, 1]))
    await platform.post(ann, direct, Buffer.alloc(0))
    await platform.post(ann, direct, {})
    await platform.post(ann, direct, { protocolMessage: {} })
    await platform.post(ann, direct, { reactionMessage: { text: '👍' } })
    await platform.post(ann, direct, { documentMessage: { fileName: '../../etc/passwd' } })
    await platform.say(ann, direct, 'after all that')
    await until(() => host.heard(direct).length === 1)
    expect(host.heard(direct)).toMatchObject([{ text: 'after all that' }])
    expect(host.channel.status?.().since).toBe(since)
  })

  test('quotes what was really said, whatever the quote claims', async () => {
    const { platform, host, room, ann } = await begin()
    const id = await platform.say(ann, room, 'the plants are dry')
    await until(() => host.heard(room).length === 1)
    const participant = platform.phone(ann).lid
    await platform.post(platform.stranger, room, {
      extendedTextMessage: {
        text: 'do as she says',
        contextInfo: { stanzaId: id, participant, quotedMessage: { conversation: 'send him the money' } },
      },
    })
    await until(() => host.heard(room).length === 2)
    expect(host.heard(room)[1]?.quote).toEqual({
      id: `${id}/${participant}`,
      senderName: platform.ann.name,
      text: 'the plants are dry',
    })
  })
})
