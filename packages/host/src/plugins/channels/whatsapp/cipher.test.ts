import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { describe, expect, onTestFinished, test } from 'vitest'
import { loadBaileys } from '../../../../../testing/src/channels/whatsapp/library.ts'
import { createPhone, type Peer, type Phone } from '../../../../../testing/src/channels/whatsapp/phone.ts'
import { createCipher } from './cipher.ts'
import type { BinaryNode } from './library.ts'
import { libraryLogger, silenceCipher } from './quiet.ts'
import { openSession } from './session.ts'

const library = await loadBaileys()
const logger = libraryLogger(pino({ level: 'silent' }))
const us = '491700000100:1@s.whatsapp.net'
const ann = { number: '491700000501', lid: '70000000000501@lid', name: 'Ann' }
const group = '120363000000000001@g.us'

/** Our end, on a real database. Opened once more on its folder, it is what a killed host finds. */
function openDevice(folder: string, take: () => Promise<void> = async () => {}) {
  const session = openSession(folder, library)
  onTestFinished(session.close)
  const { creds } = session.state
  // One that is not linked would be forgotten.
  creds.account ??= {}
  session.saveCredentials()
  const keys = library.addTransactionCapability(session.state.keys, logger, {
    maxCommitRetries: 1,
    delayBetweenTriesMs: 1,
  })
  const fail = (error: unknown) => expect.unreachable(String(error))
  const repository = createCipher(library, { take, fail, isOver: () => false })({ creds, keys }, logger)
  onTestFinished(() => repository.close?.())
  return { creds, keys, repository }
}
type Device = ReturnType<typeof openDevice>

function begin({ hasOnceKeys = true, take }: { hasOnceKeys?: boolean; take?: () => Promise<void> } = {}) {
  onTestFinished(silenceCipher())
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-cipher-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const device = openDevice(folder, take)
  const { creds, keys } = device
  const { signedPreKey: signed, signedIdentityKey: identity, registrationId } = creds
  let made = 0
  const onceKey = () => {
    const pair = library.Curve.generateKeyPair()
    void keys.set({ 'pre-key': { [++made]: pair } })
    return { keyId: made, key: pair.public }
  }
  const peer: Peer = {
    address: us,
    begin: () => ({
      registrationId,
      identity: identity.public,
      signed: { keyId: signed.keyId, key: signed.keyPair.public, signature: signed.signature },
      once: hasOnceKeys ? onceKey() : undefined,
    }),
  }
  return { folder, device, peer, phone: createPhone(library, ann) }
}

const say = (phone: Phone, peer: Peer, text: string) => phone.encrypt(peer, { conversation: text })

/** As the library hears. */
async function hear({ repository }: Device, { attrs, content }: BinaryNode, jid = ann.lid): Promise<string> {
  const type = attrs.type === 'pkmsg' ? 'pkmsg' : 'msg'
  const plain = await repository.decryptMessage({ jid, type, ciphertext: content as Uint8Array })
  return library.proto.Message.decode(library.unpadRandomMax16(plain)).conversation ?? ''
}

/** As the library sends: all in one transaction of our own, with a session that is made anew. */
const send = (
  { keys, repository }: Device,
  phone: Phone,
  text: string,
  { jid = ann.lid, isNew = true, sent = async (_: BinaryNode) => {} } = {},
): Promise<BinaryNode> =>
  keys.transaction(async () => {
    if (isNew) {
      const user = { tag: 'user', attrs: { jid }, content: [...(await phone.bundle())] }
      const list = { tag: 'list', attrs: {}, content: [user] }
      await library.parseAndInjectE2ESessions({ tag: 'iq', attrs: {}, content: [list] }, repository)
    }
    const data = library.encodeWAMessage({ conversation: text })
    const { type, ciphertext } = await repository.encryptMessage({ jid, data })
    const node = { tag: 'enc', attrs: { v: '2', type }, content: ciphertext }
    await sent(node)
    return node
  }, us)

const read = async (phone: Phone, node: BinaryNode) => (await phone.decrypt(us, node)).conversation

/** Something that is under way until it is released. */
function held() {
  const begun = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  return {
    begun: begun.promise,
    release: released.resolve,
    async wait() {
      begun.resolve()
      await released.promise
    },
  }
}

describe.each([true, false])('The cipher, where the server has keys to be used once: %s', hasOnceKeys => {
  test('hears what was said before an answer was read, though the first message came while it was being sent', async () => {
    const { device, peer, phone } = begin({ hasOnceKeys })
    const [first, second] = [await say(phone, peer, 'one'), await say(phone, peer, 'two')]
    const sending = held()
    const answer = send(device, phone, 'answer', { sent: sending.wait })
    await sending.begun
    expect(await hear(device, first)).toBe('one')
    sending.release()
    await answer
    expect(await hear(device, second)).toBe('two')
    expect(await read(phone, await answer)).toBe('answer')
    expect(await hear(device, await say(phone, peer, 'three'))).toBe('three')
  })

  test('hears what is said after an answer that was sent while a message was being stored', async () => {
    const storing = held()
    let isSecond = false
    const { device, peer, phone } = begin({
      hasOnceKeys,
      take: async () => {
        if (isSecond) await storing.wait()
      },
    })
    expect(await hear(device, await say(phone, peer, 'one'))).toBe('one')
    isSecond = true
    const second = hear(device, await say(phone, peer, 'two'))
    await storing.begun
    // Nobody waits for a message that takes its time, such as one with a file that is being fetched.
    const answer = await send(device, phone, 'answer')
    isSecond = false
    storing.release()
    expect(await second).toBe('two')
    expect(await read(phone, answer)).toBe('answer')
    expect(await hear(device, await say(phone, peer, 'three'))).toBe('three')
    expect(await hear(device, await say(phone, peer, 'four'))).toBe('four')
  })

  test('hears whoever replies before the sending has ended', async () => {
    const { device, peer, phone } = begin({ hasOnceKeys })
    expect(await hear(device, await say(phone, peer, 'one'))).toBe('one')
    const sending = held()
    const answer = Promise.withResolvers<BinaryNode>()
    const all = send(device, phone, 'answer', {
      sent: async node => {
        answer.resolve(node)
        await sending.wait()
      },
    })
    expect(await read(phone, await answer.promise)).toBe('answer')
    expect(await hear(device, await say(phone, peer, 'two'))).toBe('two')
    sending.release()
    await all
    expect(await hear(device, await say(phone, peer, 'three'))).toBe('three')
  })

  test('has kept what a reply needs when the host is killed in the middle of the sending', async () => {
    const { folder, device, peer, phone } = begin({ hasOnceKeys })
    expect(await hear(device, await say(phone, peer, 'one'))).toBe('one')
    const answer = Promise.withResolvers<BinaryNode>()
    void send(device, phone, 'answer', {
      sent: node => {
        answer.resolve(node)
        return new Promise<never>(() => {})
      },
    })
    expect(await read(phone, await answer.promise)).toBe('answer')
    const next = openDevice(folder)
    expect(await hear(next, await say(phone, peer, 'two'))).toBe('two')
    expect(await read(phone, await send(next, phone, 'once more', { isNew: false }))).toBe('once more')
  })
})

describe('The cipher', () => {
  test('never uses a key twice, though an answer was sent while a message was being stored', async () => {
    const storing = held()
    let isHeld = false
    const { device, peer, phone } = begin({ take: async () => (isHeld ? storing.wait() : undefined) })
    const isNew = false
    expect(await hear(device, await say(phone, peer, 'one'))).toBe('one')
    expect(await read(phone, await send(device, phone, 'answer one', { isNew }))).toBe('answer one')
    expect(await hear(device, await say(phone, peer, 'two'))).toBe('two')
    isHeld = true
    const third = hear(device, await say(phone, peer, 'three'))
    await storing.begun
    const answer = await send(device, phone, 'answer two', { isNew })
    storing.release()
    expect(await third).toBe('three')
    expect(await read(phone, answer)).toBe('answer two')
    expect(await read(phone, await send(device, phone, 'answer three', { isNew }))).toBe('answer three')
  })

  test('knows that a number and the id that hides it are one person', async () => {
    const storing = held()
    let isHeld = false
    const { device, peer, phone } = begin({ take: async () => (isHeld ? storing.wait() : undefined) })
    await device.repository.lidMapping.storeLIDPNMappings([{ lid: ann.lid, pn: phone.address }])
    expect(await hear(device, await say(phone, peer, 'one'), phone.address)).toBe('one')
    isHeld = true
    const second = hear(device, await say(phone, peer, 'two'), ann.lid)
    await storing.begun
    const answer = await send(device, phone, 'answer', { jid: phone.address })
    isHeld = false
    storing.release()
    expect(await second).toBe('two')
    expect(await read(phone, answer)).toBe('answer')
    expect(await hear(device, await say(phone, peer, 'three'), phone.address)).toBe('three')
    expect(await hear(device, await say(phone, peer, 'four'), ann.lid)).toBe('four')
  })

  test('can read a message again that was not stored', async () => {
    let attempts = 0
    const { folder, device, peer, phone } = begin({
      take: () => (++attempts === 1 ? Promise.resolve() : new Promise<never>(() => {})),
    })
    expect(await hear(device, await say(phone, peer, 'one'))).toBe('one')
    const second = await say(phone, peer, 'two')
    void hear(device, second)
    await expect.poll(() => attempts).toBe(2)
    expect(await hear(openDevice(folder), second)).toBe('two')
  })

  test('goes on with the next key of a group when the host is killed in the middle of a sending', async () => {
    const { folder, device, phone } = begin()
    const meId = '70000000000100@lid'
    const sendToGroup = ({ keys, repository }: Device, text: string, sent = async () => {}) => {
      const { promise, resolve } = Promise.withResolvers<[BinaryNode, Uint8Array]>()
      void keys.transaction(async () => {
        const data = library.encodeWAMessage({ conversation: text })
        const made = await repository.encryptGroupMessage({ group, meId, data })
        const node = { tag: 'enc', attrs: { v: '2', type: 'skmsg' }, content: made.ciphertext }
        resolve([node, made.senderKeyDistributionMessage])
        await sent()
      }, us)
      return promise
    }
    const readInGroup = async (node: BinaryNode) =>
      (await phone.decryptFromGroup(group, us, node)).conversation
    const [first, key] = await sendToGroup(device, 'first')
    const senderKeyDistributionMessage = { groupId: group, axolotlSenderKeyDistributionMessage: key }
    await phone.takeGroupKey(us, { senderKeyDistributionMessage })
    expect(await readInGroup(first)).toBe('first')
    const [second] = await sendToGroup(device, 'second', () => new Promise<never>(() => {}))
    expect(await readInGroup(second)).toBe('second')
    const [third] = await sendToGroup(openDevice(folder), 'third')
    expect(await readInGroup(third)).toBe('third')
  })
})
