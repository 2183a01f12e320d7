import { expect, onTestFinished, test } from 'vitest'
import { configSchema } from '../config/schema.ts'
import { costOf, priceNameOf } from '../config/usage.ts'
import { openStore } from '../store/sqlite.ts'
import type { Usage } from '../store/types.ts'
import { createUsageMeter } from './usage-limits.ts'

const used = (group: string, day: string, tokens: number): Usage => ({
  ...{ group, day, model: 'm-large-1', requests: 1 },
  ...{ inputTokens: tokens, outputTokens: 0, cachedTokens: 0 },
})

function rig(settings: object, stored: Usage[] = []) {
  const rows = stored
  const meta = new Map<string, string>()
  const clock = { now: new Date('2026-03-10T12:00:00Z') }
  const open = () =>
    createUsageMeter({
      config: configSchema.parse(settings),
      store: {
        usage: ({ since }) => rows.filter(({ day }) => day >= since),
        meta: key => meta.get(key),
        setMeta: (key, value) => void meta.set(key, value),
      },
      now: () => clock.now,
    })
  let meter = open()
  return {
    meter: () => meter,
    restart: () => {
      meter = open()
    },
    clock,
    use(group: string, tokens: number) {
      const usage = used(group, clock.now.toISOString().slice(0, 10), tokens)
      rows.push(usage)
      meter.add(usage)
    },
  }
}

test('a group’s limit stops that group alone, after a warning, and is over with the day', () => {
  const { meter, use, clock, restart } = rig({ groups: { a: { limits: { tokensPerDay: 100 } } } })
  use('a', 79)
  expect([meter().near('a'), meter().reached('a')]).toEqual([undefined, undefined])
  use('a', 1)
  expect(meter().near('a')).toEqual({
    cause: 'limit_near',
    limit: 'The limit of 100 tokens a day for this group',
  })
  expect(meter().reached('a')).toBeUndefined()
  use('a', 20)
  expect(meter().reached('a')).toMatchObject({ cause: 'limit_reached' })
  expect(meter().reached('b')).toBeUndefined()
  // What was used is not forgotten with the process.
  restart()
  expect(meter().reached('a')).toMatchObject({ cause: 'limit_reached' })
  clock.now = new Date('2026-03-11T00:00:01Z')
  expect(meter().reached('a')).toBeUndefined()
})

test('a limit counts for its group however the folder is written', () => {
  const { meter, use, restart } = rig({ groups: { Family: { limits: { tokensPerDay: 100 } } } })
  use('family', 100)
  expect(meter().reached('family')).toMatchObject({ cause: 'limit_reached' })
  restart()
  expect(meter().states()).toMatchObject([{ folder: 'Family', used: 100 }])
  meter().raise('FAMILY', 2)
  expect(meter().reached('family')).toBeUndefined()
})

test('the limit of all groups together counts what each has used, by month too, and in money', () => {
  const { meter, use } = rig(
    {
      usage: {
        currency: '€',
        prices: { m: { input: 1, output: 5 }, 'm-large': { input: 10, output: 50 } },
        limits: { costPerMonth: 20 },
      },
    },
    [used('a', '2026-02-28', 9e9), used('a', '2026-03-01', 1e6)],
  )
  use('b', 999_999)
  expect(meter().reached('c')).toBeUndefined()
  use('b', 1)
  expect(meter().reached('c')).toEqual({
    cause: 'limit_reached',
    limit: 'The limit of €20 a month for all groups together',
  })
  expect(meter().states()).toEqual([{ folder: undefined, limit: 'costPerMonth', used: 20, most: 20 }])
})

test('a person can raise limits for today, and only for today', () => {
  const { meter, use, clock, restart } = rig({ usage: { limits: { tokensPerMonth: 100 } } })
  use('a', 150)
  meter().raise(undefined, 2)
  restart()
  expect(meter().reached('a')).toBeUndefined()
  use('a', 50)
  expect(meter().reached('a')).toBeDefined()
  meter().raise(undefined, 2)
  expect(meter().reached('a')).toBeUndefined()
  clock.now = new Date('2026-03-11T00:00:01Z')
  expect(meter().reached('a')).toBeDefined()
})

test('what came from the provider’s cache costs what that costs', () => {
  const prices = { x: { input: 10, output: 20, cached: 1 }, y: { input: 10, output: 20 } }
  const of = (model: string) =>
    costOf(prices, { model, inputTokens: 1e6, outputTokens: 1e6, cachedTokens: 500_000 })
  expect([of('x-1'), of('y-1'), of('z')]).toEqual([25.5, 30, undefined])
})

test('what models cost counts after a restart, too, however many a group names in a day', () => {
  const store = openStore({ path: ':memory:', durability: 'process', prepare: false })
  onTestFinished(() => store.close())
  const config = configSchema.parse({
    usage: { prices: { m: { input: 1, output: 5 }, 'm-dear': { input: 10, output: 50 } } },
    groups: { a: { limits: { costPerDay: 1000, costPerMonth: 1000 } } },
  })
  const open = () =>
    createUsageMeter({
      config,
      store: { usage: store.agents.usage, meta: store.meta, setMeta: store.setMeta },
      now: () => new Date('2026-03-10T12:00:00Z'),
    })
  const meter = open()
  meter.states()
  for (let i = 0; i < 100; i++) {
    const usage = { ...used('a', '2026-03-10', 1e6), model: `m-${i < 50 ? 'cheap' : 'dear'}-${i}` }
    store.agents.addUsage(usage, priceNameOf(config.usage.prices, usage.model))
    meter.add(usage)
  }
  expect(meter.states().map(({ used }) => used)).toEqual([550, 550])
  expect(open().states()).toEqual(meter.states())
})
