import { expect, test } from 'vitest'
import { livenessOf, livenessWarning } from './liveness.ts'
import type { Channel, ChannelStatus } from './types.ts'

const channelWith = (name: string, status?: ChannelStatus): Channel => ({
  ...{ name, messageLimit: 100, reaches: () => false, send: async () => undefined },
  ...(status && { status: () => status }),
})
const now = 1_000_000_000

test('channels without a platform of their own say nothing; a limit that is over is none; nobody reads the code', () => {
  const confirm = { kind: 'code', value: 'a secret' } as const
  const all = livenessOf(
    [
      channelWith('web'),
      channelWith('slack', { isConnected: true, since: 1, limitedUntil: now - 1 }),
      channelWith('whatsapp', { isConnected: false, since: 2, limitedUntil: now + 1, confirm }),
    ],
    now,
  )
  expect(all).toEqual([
    { channel: 'slack', isConnected: true, since: 1, isToConfirm: false },
    { channel: 'whatsapp', isConnected: false, since: 2, limitedUntil: now + 1, isToConfirm: true },
  ])
})

test('whoever operates the host is warned of a platform that stays away, not of one that is back at once', () => {
  const warningOf = (awayMs: number, more: Partial<ChannelStatus> = {}) =>
    livenessWarning(
      livenessOf([channelWith('slack', { isConnected: false, since: now - awayMs, ...more })], now),
      now,
    )
  expect(warningOf(29_000)).toBeUndefined()
  expect(warningOf(30_000)).toBe('slack is not connected, so nobody is heard there.')
  expect(warningOf(30_000, { lastError: 'The token was revoked.' })).toContain(': The token was revoked.')
  expect(warningOf(30_000, { confirm: { kind: 'qr', value: 'a secret' } })).toBe(
    'slack waits for you to confirm it: npx hatchway channels add slack',
  )
  expect(warningOf(30_000, { isConnected: true })).toBeUndefined()
})
