import { renderUnicodeCompact } from 'uqr'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { openWhatsApp } from '../../testing/src/channels/whatsapp/platform.ts'
import { until } from '../../testing/src/until.ts'
import { openCommand } from './testing.ts'

const listed = z.array(
  z.object({
    name: z.string(),
    connected: z.boolean().nullable(),
    confirm: z.object({ kind: z.enum(['qr', 'code']), value: z.string() }).nullable(),
  }),
)

/** `channels` of a daemon that can reach a stand-in for WhatsApp. */
async function openWaiting(...settings: string[]) {
  const platform = await openWhatsApp()
  onTestFinished(platform.close)
  const command = await openCommand('channels')
  const given = [`server=${platform.settings.server}`, ...settings].flatMap(one => ['--set', one])
  const adding = command.begun('add', 'whatsapp', ...given)
  const shown = async () =>
    listed.parse(await command.json('list')).find(({ name }) => name === 'whatsapp')?.confirm ?? undefined
  let confirm: Awaited<ReturnType<typeof shown>>
  await until(async () => {
    confirm = await shown()
    return confirm !== undefined
  })
  if (!confirm) throw new Error('nothing is shown')
  return { platform, command, adding, confirm }
}

test('who asks for access is listed with what may deceive whoever decides', async () => {
  const { host, run, json } = await openCommand('channels')
  const family = { folder: 'family', jid: 'email:paul@example.org', name: 'Family' }
  await host.addGroup({ ...family, main: false, dialect: 'hatchway' })
  const sender = 'pau1@example.org'
  host.chats?.pairing.asked('email', {
    jid: `email:${sender}`,
    sender,
    senderName: 'Раul',
    text: 'hi',
    at: 1,
  })
  const notes = [
    'name: "Раul" mixes Latin and Cyrillic letters',
    'chat: looks like "email:paul@example.org" (the group family), but is another chat',
  ]
  expect(await json('requests')).toMatchObject([{ jid: 'email:pau1@example.org', notes }])
  const { out } = await run('requests')
  expect(out).toMatch(/^CODE .* NOTE$/m)
  expect(out).toContain(notes.join('; '))
})

test('what has to be scanned in the app is shown until it is, and channels list says that it waits', async () => {
  const { platform, command, adding, confirm } = await openWaiting()
  expect(confirm.kind).toBe('qr')
  const { out: table } = await command.run('list')
  expect(table).toMatch(/whatsapp +waits for you to confirm it: npx hatchway channels add whatsapp/)
  const picture = renderUnicodeCompact(confirm.value, { border: 2 })
  await until(() => adding.out().includes(picture))
  await platform.confirm(confirm)
  const { code, out } = await adding.ended
  expect(code).toBe(0)
  expect(out).toContain('WhatsApp is added, as a device that is not linked yet.')
  expect(out).toContain('Now it is connected.\nNext:\n  1. ')
  expect(await command.run('test', 'whatsapp')).toMatchObject({
    code: 0,
    out: expect.stringContaining('as +491700000100'),
  })
})

test('so is a code that has to be typed', async () => {
  const { platform, adding, confirm } = await openWaiting('phone=+49 170 0000100')
  expect(confirm.kind).toBe('code')
  const line = `Type this code in the app: ${confirm.value}\n`
  await until(() => adding.out().includes(line))
  await platform.confirm(confirm)
  expect((await adding.ended).out).toContain(`${line}Now it is connected.`)
})

test('one that nobody confirms fails, and says what to do', async () => {
  const platform = await openWhatsApp({ refs: 0 })
  onTestFinished(platform.close)
  const { run } = await openCommand('channels')
  const added = await run('add', 'whatsapp', '--set', `server=${platform.settings.server}`)
  expect(added.code).not.toBe(0)
  expect(added.err).toMatch(/Nobody has confirmed the code|WhatsApp cannot be reached/)
})
