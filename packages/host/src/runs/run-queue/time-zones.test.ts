import { join } from 'node:path'
import { post } from '@hatchway/spool'
import { expect, onTestFinished, test } from 'vitest'
import { openLive } from '../../../../testing/src/daemon/in-process.ts'
import { until } from '../../../../testing/src/until.ts'
import { createApi } from '../../api/app.ts'
import { personZoneOf } from '../../store/person-zones.ts'
import { runStart } from './run-start.ts'

async function open() {
  const live = await openLive({
    timezone: 'Europe/Berlin',
    agents: { enabled: 'no' },
    groups: { away: { timezone: 'Asia/Tokyo' } },
  })
  onTestFinished(() => live.close())
  for (const folder of ['main', 'away'])
    await live.host.addGroup({
      ...{ folder, jid: `web:${folder}`, name: folder, main: folder === 'main', dialect: 'hatchway' },
    })
  await live.start()
  return live
}

test('times without a zone are meant by the clock of the group that asks', async () => {
  const { host, layout } = await open()
  const schedule = (folder: string, task_id: string, timezone?: string) =>
    post(
      join(layout.ipc, folder, 'tasks'),
      JSON.stringify({
        ...{ version: 1, id: task_id, type: 'schedule_task' },
        payload: {
          ...{ task_id, prompt: 'x', schedule_type: 'once', schedule_value: '2090-01-31T09:00:00', timezone },
        },
      }),
    )
  schedule('main', 'here')
  schedule('away', 'there')
  schedule('away', 'named', 'America/Lima')
  await until(() => host.store.tasks({ open: true }).length === 3)
  const tasks = host.store.tasks({ open: true }).map(({ id, timezone, next_run }) => [id, timezone, next_run])
  expect(Object.fromEntries(tasks.map(([id, ...rest]) => [id, rest]))).toEqual({
    here: ['Europe/Berlin', '2090-01-31T08:00:00.000Z'],
    there: ['Asia/Tokyo', '2090-01-31T00:00:00.000Z'],
    named: ['America/Lima', '2090-01-31T14:00:00.000Z'],
  })
})

test('an agent is told where somebody is whose browser has another clock than the group', async () => {
  const { host, config } = await open()
  await host.startAgents()
  const { chats, store } = host
  if (!chats) throw new Error('there are no chats')
  const app = createApi(host, { chat: { chats } })
  const startOf = async (folder: string, timezone: string) => {
    const response = await app.request(`/api/chats/web%3A${folder}/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text: '@Hatch hi', timezone }),
    })
    expect(response.status).toBe(201)
    const group = store.group(folder)
    if (!group) throw new Error('there is no such group')
    const rows = store.agents.incoming({ group: folder, status: 'waiting' }).slice(-1)
    const known = {
      ...{ config, store: store.agents, now: Date.now },
      personZone: (row: (typeof rows)[number]) => personZoneOf(store, row),
    }
    const { timezone: ofRun, inputs } = runStart(known, { id: 'r', group, rows, job: undefined }, [])
    return [ofRun, inputs[0]?.timezone]
  }
  expect(await startOf('main', 'Asia/Tokyo')).toEqual(['Europe/Berlin', 'Asia/Tokyo'])
  // What no zone is called says nothing new.
  expect(await startOf('main', '../../etc')).toEqual(['Europe/Berlin', 'Asia/Tokyo'])
  expect(await startOf('away', 'Asia/Tokyo')).toEqual(['Asia/Tokyo', undefined])
})
