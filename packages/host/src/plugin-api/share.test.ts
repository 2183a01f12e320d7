import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { openLive } from '../../../testing/src/daemon/in-process.ts'
import { definePlugin } from './define.ts'
import type { PluginHost } from './types.ts'

test('what a stranger’s plugin shares taints its readers, under the plugin’s own name', async () => {
  const hosts: PluginHost[] = []
  const wiki = definePlugin({
    name: 'wiki',
    version: '1.0.0',
    settings: z.strictObject({}),
    groupSettings: z.strictObject({ space: z.string() }),
    load: async () => ({
      open(host) {
        hosts.push(host)
        return { runs: { shares: folder => host.groupSettings(folder)?.space } }
      },
    }),
  })
  const live = await openLive({
    plugins: [wiki()],
    groups: { writer: { wiki: { space: 'home' } }, reader: { wiki: { space: 'home' } }, other: {} },
  })
  onTestFinished(() => live.close())
  const [host] = hosts
  expect(host?.configuredGroups()).toEqual(['writer', 'reader'])
  host?.taint('writer', { corrupted: true, secret: false }, 'a page')
  host?.share('writer', 'home', ['reader'])
  const tainted = live.host.store.taints.all().map(({ group, corruptedAt }) => [group, corruptedAt !== null])
  expect(new Map(tainted.map(([group, is]) => [String(group), is]))).toEqual(
    new Map([
      ['writer', true],
      ['wiki:home', true],
      ['reader', true],
    ]),
  )
})
