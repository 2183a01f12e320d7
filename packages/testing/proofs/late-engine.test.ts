import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findProgram } from '../../host/src/base/programs.ts'
import { openInstallation } from '../src/daemon/installation.ts'
import { until } from '../src/until.ts'

const missing = findProgram('bwrap') ? undefined : 'bwrap'
const attempt = missing === undefined || process.env.CI === 'true' ? test : test.skip

attempt('a sandbox that does not work when the host starts is used once it does', async () => {
  let broken = ''
  const installation = await openInstallation({
    sandbox: 'bubblewrap',
    environment: home => {
      broken = join(home, 'bin', 'bwrap')
      mkdirSync(join(home, 'bin'))
      writeFileSync(broken, '#!/bin/sh\necho not yet >&2\nexit 1\n', { mode: 0o755 })
      const file = join(home, 'hatchway.config.mjs')
      const agents = { driver: 'command', command: ['/bin/sh', '-c', 'cat > /dev/null; echo here I am'] }
      writeFileSync(file, `export default ${JSON.stringify({ agents })}`)
      return { HATCHWAY_CONFIG: file, PATH: `${join(home, 'bin')}:${process.env.PATH}` }
    },
  })
  const sandbox = async () => JSON.parse(await installation.hatchway('status', '--json')).status.sandbox
  await until('the host has tried its sandbox', async () => (await sandbox())?.name === 'none')
  rmSync(broken)
  expect(await installation.say('are you there?')).toContain('here I am')
  expect(await sandbox()).toMatchObject({ name: 'bubblewrap', isolated: true, warning: null })
})
