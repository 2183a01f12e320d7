import type { Outcome } from '@hatchway/protocol'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { done } from '../base/outcome.ts'
import { digestOf, heldIn } from '../guard/guard.ts'
import { openStore } from '../store/sqlite.ts'
import { groupOf } from '../store/testing.ts'
import type { Effect } from './effects.ts'
import { createCommands } from './registry.ts'
import { type CommandContext, type CommandDefinition, defineCommand } from './types.ts'

const ring = defineCommand({
  type: 'bell.ring',
  payload: z.strictObject({ times: z.int(), ok: z.boolean().optional() }),
  permission: { main: 'any', others: 'own' },
  target: (_, { actor }) => (actor.kind === 'group' ? { folder: actor.group.folder } : 'host'),
  guard: ({ times }) => ({
    action: { name: 'bell.ring', summary: 'ring the bell', payload: { times } },
    reach: 'both',
    reads: { corrupted: false, secret: false },
  }),
  provider: 'bell 1.0.0',
  execute: ({ times }) => done({ rang: times }),
})

function open(definition: CommandDefinition = ring) {
  const store = openStore({ path: ':memory:', durability: 'process' })
  onTestFinished(() => store.close())
  const group = groupOf('family')
  store.transaction(transaction => transaction.insertGroup(group))
  const effects: Effect[] = []
  const perform = (payload: object, more: Partial<CommandContext> = {}, type = 'bell.ring'): Outcome | null =>
    store.transaction(transaction =>
      createCommands([definition]).perform(
        { type, payload: { ...payload } },
        {
          transaction,
          actor: { kind: 'group', group },
          seq: 1,
          now: new Date(),
          timezone: 'UTC',
          limits: { openTasks: 9, openTaskBytes: 9, openRequests: 9, openRequestBytes: 999, messageBytes: 9 },
          request: { seq: 1, reply: null },
          guard: { containsSecrets: () => false, isOffline: () => true, approvalMs: 1000 },
          effect: effect => void effects.push(effect),
          ...more,
        },
      ),
    )
  return { store, effects, perform }
}

test('a field named like a part of an answer does not become the answer', () => {
  expect(open().perform({ times: 2, ok: true })).toEqual({ ok: true, result: { rang: 2 } })
})

test('a payload is checked by the command’s own schema, and the refusal names the field', () => {
  const { perform } = open()
  expect(perform({ times: 'twice' })).toMatchObject({
    ok: false,
    error: { code: 'invalid_field', message: 'payload.times: must be a number' },
  })
  expect(perform({ times: 1, tmes: 1 })).toMatchObject({ ok: false, error: { code: 'invalid_field' } })
})

test('two commands of one type are a mistake of whoever puts them together', () => {
  expect(() => createCommands([ring, ring])).toThrow('Two commands have the type bell.ring.')
})

test('a command that the protocol lists and no plugin carries out is unavailable, any other is unknown', () => {
  const { perform } = open()
  expect(perform({}, {}, 'deploy')).toMatchObject({ ok: false, error: { code: 'unavailable' } })
  expect(perform({}, {}, 'bell.sing')).toMatchObject({ ok: false, error: { code: 'unknown_type' } })
})

test('what was held for one version of a plugin is not executed by another', () => {
  const { store, effects, perform } = open()
  store.transaction(transaction =>
    transaction.addTaint('family', 'session', { corrupted: true, secret: true }, 'a test', 1),
  )
  expect(perform({ times: 3 })).toBeNull()
  const [stored] = effects
  const held = stored?.kind === 'request_stored' ? heldIn(stored.request) : undefined
  expect(held).toMatchObject({
    provider: 'bell 1.0.0',
    command: { type: 'bell.ring', payload: { times: 3 } },
  })
  if (!held) throw new Error('nothing was held')
  const released = {
    isReleased: true,
    seen: held.taint,
    shown: { digest: digestOf(held.action), evidence: undefined },
  }
  const later = open({ ...ring, provider: 'bell 2.0.0' })
  expect(later.perform({ times: 3 }, { ...released, provider: held.provider })).toMatchObject({
    ok: false,
    error: { code: 'conflict' },
  })
  expect(perform({ times: 3 }, { ...released, provider: held.provider })).toEqual(done({ rang: 3 }))
})
