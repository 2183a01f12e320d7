import { rmSync } from 'node:fs'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { temporaryFolder } from '../../../testing/src/folders.ts'
import { createLayout, layoutOf } from '../base/layout.ts'
import { done } from '../base/outcome.ts'
import { createRetries } from '../base/retry.ts'
import type { Effect } from '../commands/effects.ts'
import { configSchema } from '../config.ts'
import { openStore } from '../store/sqlite.ts'
import { definePlugin } from './define.ts'
import { openPlugins } from './open.ts'
import type { BuiltInHost, Contributions, PluginHost } from './types.ts'

const log = pino({ level: 'silent' })

/** Opens plugins that were not shipped with Hatchway, each under the name of its place. */
async function open(...plugins: ((host: PluginHost) => Contributions)[]) {
  const data = temporaryFolder('plugins')
  onTestFinished(() => rmSync(data, { recursive: true, force: true }))
  const layout = layoutOf(data)
  createLayout(layout)
  const store = openStore({ path: layout.database, durability: 'process' })
  onTestFinished(() => store.close())
  const effects: Effect[] = []
  const opened = await openPlugins(
    plugins.map((make, i) => ({
      manifest: definePlugin({
        name: `plugin-${i}`,
        version: '1',
        settings: z.object({}),
        load: async () => ({ open: make }),
      })(),
      settings: {},
      groupSettings: () => undefined,
      configuredGroups: () => [],
      isBuiltIn: false,
    })),
    {
      store,
      layout,
      owners: () => undefined,
      limits: configSchema.parse({}).limits,
      timezone: 'UTC',
      durability: 'process',
      environment: {},
      isDaemon: true,
      runsAgents: true,
      log,
      signal: new AbortController().signal,
      fault: () => {},
      retries: createRetries({ log, now: Date.now }),
      supervision: undefined,
      publish: all => void effects.push(...all),
      perform: async command => done({ type: command.type }),
      tellAgent: () => {},
      share: () => {},
      readAttachment: async () => undefined,
      leaveFile: async () => '',
      attach: async () => async () => {},
      now: () => new Date(),
    },
  )
  return { opened, effects }
}

const failing = () => {
  throw new Error('broken')
}

test('every plugin is told how the start went and of the end, also where one of them fails', async () => {
  const told: string[] = []
  const telling = (name: string): Contributions => ({
    start: () => void told.push(`${name} start`),
    failed: () => void told.push(`${name} failed`),
    ready: () => void told.push(`${name} ready`),
    stop: () => void told.push(`${name} stop`),
  })
  const breaking = async () => failing()
  const { opened } = await open(
    () => telling('first'),
    () => ({ start: breaking, failed: failing, ready: breaking, stop: breaking }),
    () => telling('last'),
  )
  await opened.start()
  opened.failed()
  await opened.ready()
  await opened.stop()
  expect(told).toEqual([
    ...['first start', 'last start', 'first failed', 'last failed'],
    ...['first ready', 'last ready', 'last stop', 'first stop'],
  ])
})

test('what plugins show people is put together, without those that fail', async () => {
  const { opened } = await open(
    () => ({ signs: () => ({ deploys: '1' }), waiting: () => ({ deploys: 2 }) }),
    () => ({}),
    () => ({ signs: failing, waiting: failing }),
    () => ({ signs: () => ({ jobs: '3', deploys: '4' }), waiting: () => ({ parcels: 4 }) }),
  )
  expect(opened.signs()).toEqual([
    ['deploys', '1'],
    ['jobs', '3'],
    ['deploys', '4'],
  ])
  expect(opened.waiting()).toEqual({ deploys: 2, parcels: 4 })
})

test('a plugin can call an agent: the rest of the host is told after the commit, and only of what was stored', async () => {
  const hosts: PluginHost[] = []
  const { effects } = await open(host => {
    hosts.push(host)
    return {}
  })
  const [host] = hosts
  if (!host) throw new Error('the plugin was not opened')
  expect(() =>
    host.transaction((_, notify) => {
      notify({ kind: 'agent_called' })
      throw new Error('not stored')
    }),
  ).toThrow('not stored')
  expect(effects).toEqual([])
  host.transaction((_, notify) => notify({ kind: 'agent_called' }))
  expect(effects).toEqual([{ kind: 'agent_called' }])
  expect(await host.perform({ type: 'refresh_groups', payload: {} })).toMatchObject({ ok: true })
})

test('a plugin from outside is given nothing that only those of the release may use', async () => {
  const given: string[] = []
  await open(host => {
    given.push(...Object.keys(host))
    return {}
  })
  expect(given).toContain('sql')
  const ours: (keyof Omit<BuiltInHost, keyof PluginHost>)[] = [
    ...(['store', 'layout', 'owners', 'limits', 'fault', 'retries', 'supervision'] as const),
  ]
  expect(given.filter(name => ours.some(one => one === name))).toEqual([])
})
