import { join } from 'node:path'
import { createNames, post } from '@hatchway/spool'
import { expect, test, vi } from 'vitest'
import { openCommand } from './testing.ts'

test('a note says when long messages leave no room for older ones', async () => {
  const { data, host, run } = await openCommand('messages')
  await host.addGroup({ folder: 'family', jid: 'chat:1', name: 'Family', main: false, dialect: 'hatchway' })
  const freshName = createNames()
  for (let i = 0; i < 10; i++) {
    const payload = { text: 'x'.repeat(900_000) }
    post(
      join(data, 'ipc', 'family', 'messages'),
      JSON.stringify({ version: 1, id: `long-${i}`, type: 'send_message', payload }),
      { name: freshName() },
    )
  }
  const stored = () => host.store.messages({ limit: 20, characters: 1e9 })
  await vi.waitFor(() => expect(stored()).toHaveLength(10), { timeout: 30_000 })

  const shown = async (limit: number) => {
    const { code, out, err } = await run('list', '--limit', String(limit), '--json')
    expect(code).toBe(0)
    return { ids: JSON.parse(out).map(({ id }: { id: number }) => id), err }
  }
  const ids = stored().map(({ id }) => id)
  expect(await shown(2)).toEqual({ ids: ids.slice(-2), err: '' })
  const ten = await shown(10)
  expect(ten.ids.length).toBeLessThan(10)
  expect(ten.ids).toEqual(ids.slice(-ten.ids.length))
  expect(ten.err).toContain('older ones are left out')
})
