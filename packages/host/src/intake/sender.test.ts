import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createNames, post } from '@hatchway/spool'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Live, openLive } from '../../../testing/src/daemon/in-process.ts'
import { temporaryFolder } from '../../../testing/src/folders.ts'
import { until } from '../../../testing/src/until.ts'

let live: Live
const freshName = createNames()

beforeAll(async () => {
  live = await openLive({}, temporaryFolder('sender'))
  await live.host.addGroup({
    ...{ folder: 'family', jid: 'family@chat', name: 'Family', main: false, dialect: 'mdclaw' },
  })
  await live.start()
})
afterAll(() => live.close())

/** Files of MDClaw say whose they are. */
async function drop(source_group: string): Promise<string> {
  const name = freshName()
  const before = live.events.length
  const payload = {
    ...{ prompt: 'Water the plants', schedule_type: 'cron', schedule_value: '0 9 * * *' },
    ...{ context_mode: 'group', chat_jid: 'family@chat' },
  }
  const body = { type: 'schedule_task', payload, source_group }
  post(join(live.layout.ipc, 'family', 'tasks'), JSON.stringify(body), { name })
  await until('it is handled', () => live.events.length > before)
  return name
}

test('a file that names the group whose directory it lies in is executed', async () => {
  await drop('family')
  expect(live.events.at(-1)?.outcome).toMatchObject({ ok: true })
})

test.each(['main', 'Family', 'family-x', 'famil', ' family', 'family\n', '', 'famıly', '../family'])(
  'a file in family that claims to come from %j is refused, and the claim is not repeated',
  async claim => {
    const name = await drop(claim)
    const error = {
      code: 'sender_mismatch',
      message: 'The file names another sender than the directory it lies in.',
    }
    expect(live.events.at(-1)?.outcome).toEqual({ ok: false, error })
    const reason = readdirSync(live.layout.errors).find(file => file.endsWith(`${name}.error.json`))
    expect(JSON.parse(readFileSync(join(live.layout.errors, String(reason)), 'utf8'))).toMatchObject({
      code: error.code,
    })
  },
)
