import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { createLayout, layoutOf } from '../../base/layout.ts'
import { openAccounts } from './accounts.ts'
import { createManager } from './manager.ts'

test('what is for a channel that was added waits until it is open, and fails where it cannot be used', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'hatchway-manager-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const layout = layoutOf(directory)
  createLayout(layout)
  const folder = mkdtempSync(join(directory, 'accounts-'))
  openAccounts(folder, layout.staging).put('telegram', { kind: 'telegram', settings: { token: 'none' } })
  const manager = createManager({
    folder: () => folder,
    layout,
    isDaemon: true,
    attach: async () => async () => {},
    memory: { forgetChannel: () => {} },
    readFile: async () => undefined,
    assistant: 'Hatch',
    log: pino({ level: 'silent' }),
    now: Date.now,
  })
  const unopened = (jid: string) => manager.unopened.find(channel => channel.reaches(jid))
  const attempt = async () => {
    const sending: Promise<unknown> | undefined = unopened('telegram:1')?.send(
      {
        ...{
          id: 1,
          group: 'main',
          jid: 'telegram:1',
          author: 'agent',
          kind: 'text',
          text: 'hello',
          sender: null,
          speech: null,
        },
        ...{ messageId: null, status: 'pending', attempts: 0, nextAttemptAt: 0, partsSent: 0, partsTotal: 0 },
        ...{ error: null, createdAt: 0, sentAt: null },
      },
      { number: 1, of: 1, key: 'hw1-1' },
    )
    return sending?.catch((error: unknown) => error)
  }
  expect(unopened('discord:1')).toBeUndefined()
  expect(await attempt()).toMatchObject({ retryAfterMs: expect.any(Number), isFinal: false })
  await manager.start()
  // Its token is none: that counts as an attempt, and in the end agent and operator are told.
  expect(await attempt()).not.toHaveProperty('retryAfterMs')
  expect(unopened('telegram:1')?.problem?.()).toContain('@BotFather')
  // A name that is none is no path either.
  expect(await manager.remove('../accounts')).toBe(false)
  expect(await manager.remove(`../${basename(folder)}`)).toBe(false)
  expect(existsSync(folder)).toBe(true)
  await manager.remove('telegram')
  expect(unopened('telegram:1')).toBeUndefined()
})
