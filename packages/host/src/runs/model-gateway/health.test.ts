import type { Group } from '@hatchway/protocol'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { configSchema } from '../../config/schema.ts'
import { createModelHealth, keyProblem, modelOf } from './health.ts'

const groupOf = (folder: string): Group => ({
  folder,
  jid: `${folder}@chat`,
  name: folder,
  main: false,
  dialect: 'hatchway',
  trigger: null,
  requires_trigger: false,
  channel: null,
  added_at: '2026-01-01T00:00:00Z',
  last_activity: null,
})
const [a, b] = [groupOf('a'), groupOf('b')]

function rig(environment: NodeJS.ProcessEnv = { ANTHROPIC_API_KEY: 'sk-of-the-host' }, driver = 'claude') {
  const told: string[] = []
  const seen = { now: 0, changes: 0 }
  const health = createModelHealth({
    missingDriver: () => undefined,
    config: { ...configSchema.parse({ agents: { driver } }), data: '' },
    environment,
    notify: ({ folder }, text) => told.push(`${folder}: ${text}`),
    changed: () => seen.changes++,
    log: pino({ level: 'silent' }),
    now: () => seen.now,
  })
  return { health, told, seen }
}

test('a problem is said once in a chat, however many requests and runs meet with it', () => {
  const { health, told, seen } = rig()
  for (const run of ['1', '1', '2']) health.note(run, a, { cause: 'unreachable' })
  health.note('3', b, { cause: 'unreachable' })
  health.note('2', a, { cause: 'key_refused' })
  expect(told.map(text => text.slice(0, 30))).toEqual([
    'a: The host cannot reach the m',
    'b: The host cannot reach the m',
    'a: The model API refuses the h',
  ])
  seen.now += 600_000
  health.note('4', a, { cause: 'unreachable' })
  expect(told).toHaveLength(4)
})

test('the operator is warned for as long as it lasts, and a run knows its own problem', () => {
  const { health, seen } = rig()
  expect(health.warning()).toBeUndefined()
  health.note('1', a, { cause: 'key_refused' })
  expect(health.warning()).toContain('ANTHROPIC_API_KEY')
  expect(health.problemOf('1')).toBe(health.warning())
  expect(health.problemOf('2')).toBeUndefined()
  health.note('1', a, undefined)
  expect(health.warning()).toBeUndefined()
  expect(health.problemOf('1')).toBeUndefined()
  expect(seen.changes).toBe(2)
})

test('a missing key is known from the start where somebody needs it, and not where nobody does', () => {
  expect(rig({}).health.warning()).toContain('ANTHROPIC_API_KEY is empty')
  expect(rig({}, 'concierge').health.warning()).toBeUndefined()
})

test.each([
  [undefined, 'key_missing'],
  [' \n', 'key_missing'],
  ['two words', 'key_invalid'],
  ['sk-ü', 'key_invalid'],
  ['sk-with-a-line-break-at-its-end\n', undefined],
])('the key %j: %s', (key, cause) => {
  const config = { ...configSchema.parse({}), data: '' }
  const environment = key === undefined ? {} : { ANTHROPIC_API_KEY: key }
  expect(keyProblem(modelOf(config, environment), environment)?.cause).toBe(cause)
})

test('each group’s problem is told with its own provider, address and key', () => {
  const told: string[] = []
  const health = createModelHealth({
    missingDriver: () => undefined,
    config: {
      ...configSchema.parse({
        agents: { driver: 'assistant' },
        model: { provider: 'openai' },
        groups: { b: { model: { provider: 'ollama', name: 'qwen3' } } },
      }),
      data: '',
    },
    environment: { OPENAI_API_KEY: 'sk-of-the-host' },
    notify: ({ folder }, text) => told.push(`${folder}: ${text}`),
    changed() {},
    log: pino({ level: 'silent' }),
    now: () => 0,
  })
  // Ollama needs no key.
  expect(health.warning()).toBeUndefined()
  health.note('1', a, { cause: 'key_refused' })
  health.note('2', b, { cause: 'unreachable', code: 'ECONNREFUSED', isRetried: true })
  expect(told).toEqual([
    'a: OpenAI refuses the host’s key. Put a valid one into OPENAI_API_KEY and restart Hatchway.',
    'b: The host cannot reach the model API at 127.0.0.1:11434 (ECONNREFUSED). It tries again.',
  ])
  expect(health.problemOf('2')).toContain('Check the network of the host')
})
