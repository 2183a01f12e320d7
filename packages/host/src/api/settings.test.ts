import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openHost } from '../assemble/host.ts'
import { loadConfig } from '../config.ts'
import { settingsAnswer } from './answers.ts'
import { createApi } from './app.ts'
import { folder, people } from './testing.ts'

test('settings say where they come from, and keep secrets to themselves', async () => {
  const directory = folder('settings')
  const [user] = await people()
  const file = join(directory, 'hatchway.config.mjs')
  writeFileSync(
    file,
    `export default ${JSON.stringify({ web: { users: [user] }, webhook: { url: 'https://me:secret@example.org/hook' } })}`,
  )
  const config = await loadConfig({
    file,
    data: join(directory, 'data'),
    env: { HATCHWAY_LOG_LEVEL: 'silent', HATCHWAY_SWEEP_MS: '5000' },
  })
  const host = await openHost(config, { watch: false })
  onTestFinished(() => host.stop())
  const response = await createApi(host).request('/settings')
  const text = await response.text()
  expect(text).not.toContain('secret@')
  expect(text).not.toContain(user?.passwordHash)
  const settings = settingsAnswer.parse(JSON.parse(text))
  const find = (name: string) => settings.find(setting => setting.name === name)
  expect(find('sweepMs')).toMatchObject({ value: 5000, source: 'HATCHWAY_SWEEP_MS', default: '60000' })
  expect(find('data')).toMatchObject({ source: 'command line' })
  expect(find('webhook.url')).toMatchObject({ value: 'https://…@example.org/hook', source: file })
  expect(find('web.users')).toMatchObject({ value: null, source: file })
  expect(find('graceMs')).toMatchObject({ source: 'default' })
})
