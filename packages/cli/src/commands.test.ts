import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { node, openCommand } from './testing.ts'

const bin = join(import.meta.dirname, '..', 'bin', 'hatchway.mjs')

/** A group whose agent sent one command that is done and one that was refused. */
async function openHandled() {
  const command = await openCommand('commands')
  const { host, data, json } = command
  const hatchway = (...args: string[]) => node([bin, ...args, '--data', data])
  await host.addGroup({ folder: 'family', jid: 'chat:1', name: 'Family', main: false, dialect: 'hatchway' })
  const post = (type: string, payload: unknown) =>
    hatchway('post', '--group', 'family', '--type', type, '--payload', JSON.stringify(payload), '--wait')
  expect(await post('send_message', { text: 'hi\u202e\u001b[2J' })).toMatchObject({ code: 0 })
  expect(await post('fly', {})).toMatchObject({ code: 2 })
  await vi.waitFor(async () => expect(await json('list')).toHaveLength(2), { timeout: 20_000 })
  return { ...command, hatchway }
}

test('commands are listed by what they are and what was decided, and one is shown whole', async () => {
  const { run, json, hatchway } = await openHandled()
  expect(await json('list', '--decision', 'refused')).toMatchObject([{ type: 'fly' }])
  expect(await json('list', '--decision', 'ok', '--group', 'family')).toMatchObject([
    { type: 'send_message' },
  ])
  expect(await json('list', '--type', 'fly', '--limit', '1')).toMatchObject([{ type: 'fly' }])
  expect(await json('list', '--decision', 'open')).toEqual([])
  expect(await run('list', '--decision', 'maybe')).toMatchObject({ code: 64 })
  const table = await run('list')
  expect(table.out).toMatch(/^SEQ +RECEIVED +GROUP +TYPE +DECISION +TOOK +REASON\n/)
  expect(table.out).toMatch(/ family +fly +refused unknown_type +[\d.]+ ms {2}\S/)

  const [seq = ''] = /\d+(?= .* send_message )/.exec(table.out) ?? []
  const shown = await run('show', seq)
  expect(shown).toMatchObject({ code: 0, err: '' })
  for (const part of ['sender', 'steps', 'receipt', 'file as received', '\\u202e'])
    expect(shown.out).toContain(part)
  expect(shown.out.replaceAll('\n', '')).not.toMatch(/\p{C}/u)
  expect(await json('show', seq)).toMatchObject({
    type: 'send_message',
    sender: { group: 'family' },
    steps: expect.arrayContaining([expect.objectContaining({ name: 'decided' })]),
    outcome: { ok: true },
    content: { text: expect.stringContaining('send_message') },
  })
  expect(await run('show', '999999')).toMatchObject({ code: 2, err: expect.stringContaining('999999') })

  const status = await hatchway('status')
  expect(status.out).toMatch(/^daemon +process \d+, version .*\n/)
  expect(status.out).toMatch(/^refused +1 file: npx hatchway errors list$/m)
  expect(status.out).toMatch(/^commands +2 since the start, 1 refused/m)
  expect(JSON.parse((await hatchway('status', '--json')).out)).toMatchObject({
    daemon: true,
    groups: 1,
    waiting: { errors: 1 },
  })
})

test('tail without a screen shows only what was asked for', async () => {
  const { hatchway, stop } = await openHandled()
  await stop()
  const lines = async (...args: string[]) =>
    (await hatchway('tail', ...args, '--json')).out
      .trimEnd()
      .split('\n')
      .map((line): unknown => JSON.parse(line))
  expect(await lines('--decision', 'refused')).toMatchObject([{ type: 'fly' }])
  expect(await lines('--type', 'send_message', '-n', '1')).toMatchObject([{ type: 'send_message' }])
  expect((await hatchway('status')).out).toContain('not running')
})
