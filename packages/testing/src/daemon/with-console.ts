import { join } from 'node:path'
import { createNames, post } from '@hatchway/spool'
import { pino } from 'pino'
import { onTestFinished } from 'vitest'
import { serveWeb } from '../../../host/src/api/web-server.ts'
import type { ConfigInput } from '../../../host/src/config.ts'
import { openLive } from './in-process.ts'

const freshName = createNames()

/** A host in this process that browsers can reach, whose agents are files that the test writes. */
export async function openServed(input: ConfigInput = {}, folders: readonly string[] = ['main', 'family']) {
  const live = await openLive({ agents: { enabled: 'no' }, ...input, web: { port: 0, ...input.web } })
  onTestFinished(() => live.close())
  const { host, config } = live
  for (const folder of folders) {
    const main = folder === 'main'
    await host.addGroup({ folder, jid: `web:${folder}`, name: folder, main, dialect: 'hatchway' })
  }
  await live.start()
  await host.startAgents()
  const { chats, store } = host
  if (!chats) throw new Error('there are no chats')
  const server = await serveWeb({ host, store, config, chats, log: pino({ level: 'silent' }) })
  if (!server?.link) throw new Error('nothing is served')
  onTestFinished(() => server.close())
  return {
    live,
    host,
    url: server.url,
    link: server.link,
    drop: (folder: string, type: string, id: string, payload: object) =>
      post(join(live.layout.ipc, folder, 'tasks'), JSON.stringify({ version: 1, id, type, payload }), {
        name: freshName(),
      }),
    /** what main's agent may no longer tell others without a person */
    taint: () =>
      store.transaction(transaction =>
        transaction.addTaint('main', 'session', { corrupted: true, secret: true }, 'a test', Date.now()),
      ),
  }
}
