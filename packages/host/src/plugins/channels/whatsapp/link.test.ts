import { statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  alone,
  connected,
  optionsFor,
  outgoing,
  part,
} from '../../../../../testing/src/channels/whatsapp/rig.ts'
import { until } from '../../../../../testing/src/until.ts'
import type { Incoming } from '../../../chat/channels/types.ts'
import { check } from './channel.ts'

describe('A device of WhatsApp', () => {
  test('is linked by a code that is typed on the phone, and says who we are then', async () => {
    const { platform, channel, folder } = await alone({}, { settings: { phone: '+49 170 0000100' } })
    await until(() => channel.status?.().confirm !== undefined)
    expect(channel.status?.().confirm).toEqual({
      kind: 'code',
      value: expect.stringMatching(/^[1-9A-HJ-NP-TV-Z]{4}-[1-9A-HJ-NP-TV-Z]{4}$/),
    })
    const options = optionsFor(platform.settings, { folder })
    expect(await check(options)).toBe('a device that is not linked yet')
    await connected(platform, channel)
    expect(channel.status?.().confirm).toBeUndefined()
    expect(await check(options)).toContain('+491700000100')
    for (const ending of ['', '-wal', '-shm'])
      expect(statSync(join(folder, `session.db${ending}`)).mode & 0o777).toBe(0o600)
  })

  test('whose linking was broken off is linked from the beginning', async () => {
    const { platform, channel, another } = await alone({}, { settings: { phone: '491700000100' } })
    await until(() => channel.status?.().confirm !== undefined)
    await channel.disconnect?.()
    expect(channel.status?.().confirm).toBeUndefined()
    await connected(platform, await another({}, {}))
  })

  test('that nobody confirms is given up, and says what to do', async () => {
    const { channel } = await alone({}, { refs: 0 })
    await until(() => channel.problem?.() !== undefined)
    expect(channel.problem?.()).toContain('Nobody has confirmed the code in time')
    expect(channel.problem?.()).toContain('channels add whatsapp')
  })

  test('that was removed on the phone says so, and can be linked again', async () => {
    const heard: Incoming[] = []
    const receive = async (message: Incoming) => {
      heard.push(message)
      return { ok: true, id: 1, status: 'waiting' } as const
    }
    const { platform, channel, another } = await alone({ receive })
    await connected(platform, channel)
    platform.server.logOut()
    await until(() => channel.problem?.() !== undefined)
    expect(channel.problem?.()).toContain('logged this device out')
    expect(channel.status?.()).toMatchObject({ isConnected: false, lastError: channel.problem?.() })
    await channel.disconnect?.()
    const next = await another()
    await connected(platform, next)
    // Her phone finds the new keys.
    await platform.phone(platform.ann).forget(platform.server.address)
    await platform.say(platform.ann, platform.direct, 'welcome back')
    await until(() => heard.length === 1)
  })

  test('whose keys another program uses says so, and does not fight for its place', async () => {
    const { platform, channel, another } = await alone()
    await connected(platform, channel)
    const next = await another()
    await connected(platform, next)
    await until(() => channel.status?.().isConnected === false)
    expect(channel.status?.().lastError).toContain('Another program uses the keys')
    await expect(channel.send(outgoing(platform.direct, 'hello'), part)).rejects.toThrow('not connected')
    expect(next.status?.().isConnected).toBe(true)
  })

  test.each([
    ['403', 'has blocked this account'],
    ['405', 'Update Hatchway'],
  ])('that is refused for good (%s) is not tried again', async (reason, words) => {
    const { platform, channel } = await alone()
    await connected(platform, channel)
    platform.server.failLogins(reason)
    await until(() => channel.problem?.() !== undefined)
    expect(channel.problem?.()).toContain(words)
  })

  test('does not pause for a message that it cannot read', async () => {
    const heard: string[] = []
    const receive = async ({ text }: Incoming) => {
      if (!heard.includes(text)) heard.push(text)
      return { ok: true, id: heard.length, status: 'waiting' } as const
    }
    const { platform, channel } = await alone({ receive })
    await connected(platform, channel)
    const chat = `whatsapp:${platform.stranger.id}`
    await channel.send(outgoing(chat, 'hello'), part)
    await platform.say(platform.stranger, chat, 'first')
    await until(() => platform.server.confirmed.length === 1)
    // Whoever waits for a timer now waits for ever.
    vi.useFakeTimers({ toFake: ['setTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    await platform.repeat()
    await platform.say(platform.ann, platform.direct, 'second')
    await until(() => heard.length === 2)
    expect(heard).toEqual(['first', 'second'])
    await until(() => platform.server.receipts.some(({ attrs }) => attrs.type === 'retry'))
  })

  test('leaves no secret and no word in the log or on the console', async () => {
    const lines: string[] = []
    const written = (['log', 'info', 'warn', 'error', 'debug'] as const).map(method =>
      vi.spyOn(console, method).mockImplementation(() => {}),
    )
    onTestFinished(() => {
      for (const spy of written) spy.mockRestore()
    })
    const heard: Incoming[] = []
    const { platform, channel } = await alone(
      {
        receive: async message => {
          heard.push(message)
          return { ok: true, id: 1, status: 'waiting' }
        },
      },
      { log: line => lines.push(line) },
    )
    await until(() => channel.status?.().confirm !== undefined)
    const qr = channel.status?.().confirm?.value ?? ''
    await connected(platform, channel)
    await platform.say(platform.ann, platform.direct, 'a private word')
    await until(() => heard.length === 1)
    // A new session takes the place of the old one, which the cipher would print.
    await platform.phone(platform.ann).forget(platform.server.address)
    await platform.say(platform.ann, platform.direct, 'another private word')
    await until(() => heard.length === 2)
    console.info('still heard')
    expect(written.flatMap(spy => spy.mock.calls)).toEqual([['still heard']])
    const all = lines.join('\n')
    expect(all).not.toContain('private word')
    for (const secret of qr.split(',').filter(one => one.length > 20)) expect(all).not.toContain(secret)
    expect(all).not.toMatch(/privKey|Buffer/)
  })
})
