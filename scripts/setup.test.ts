import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

const setup = join(import.meta.dirname, 'setup.mjs')

/** A PATH with nothing on it but what the test puts there; `bwrap` is in none of the other places. */
function machine(programs: Record<string, string>): string {
  const bin = mkdtempSync(join(tmpdir(), 'hatchway-setup-'))
  onTestFinished(() => rmSync(bin, { recursive: true }))
  symlinkSync('/bin/sh', join(bin, 'sh'))
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  return bin
}

const run = (bin: string, purpose: string, env: NodeJS.ProcessEnv = {}) =>
  spawnSync(process.execPath, [setup, purpose], { encoding: 'utf8', env: { PATH: bin, ...env } })

const succeed = 'exit 0'
const fail = 'echo "E: no such package" >&2; exit 100'
const installs = (bin: string) =>
  `echo "$@" >> ${bin}/calls; printf '#!/bin/sh\\n' > ${bin}/bwrap; /bin/chmod +x ${bin}/bwrap`

test('nothing is said or done where all is there', () => {
  const bin = machine({ bwrap: succeed, 'apt-get': fail })
  expect(run(bin, 'start')).toMatchObject({ status: 0, stdout: '', stderr: '' })
})

test('what is missing is installed once', () => {
  const bin = machine({ sudo: 'shift; exec "$@"' })
  writeFileSync(join(bin, 'apt-get'), `#!/bin/sh\n${installs(bin)}\n`)
  chmodSync(join(bin, 'apt-get'), 0o755)
  const first = run(bin, 'start')
  expect(first.status).toBe(0)
  expect(first.stderr).toContain('installing bubblewrap')
  expect(existsSync(join(bin, 'calls'))).toBe(true)
  expect(run(bin, 'start')).toMatchObject({ status: 0, stderr: '' })
})

test('what cannot be installed is named, with what will not run and what to do', () => {
  for (const bin of [machine({}), machine({ 'apt-get': fail, sudo: 'exit 1' })]) {
    const { status, stderr } = run(bin, 'start')
    expect(status).toBe(0)
    expect(stderr).toContain('bubblewrap is not installed: agents in a sandbox that needs no engine')
    expect(stderr).toContain('sudo apt-get install bubblewrap')
  }
})

test('nothing is installed for those who do not want it', () => {
  const bin = machine({ 'apt-get': 'exit 1' })
  const { stderr } = run(bin, 'start', { HATCHWAY_NO_INSTALL: '1' })
  expect(stderr).not.toContain('installing')
  expect(stderr).toContain('bubblewrap is not installed')
})

test('each purpose has needs of its own', () => {
  const bin = machine({ bwrap: succeed })
  const { stderr } = run(bin, 'test', { HATCHWAY_NO_INSTALL: '1' })
  expect(stderr).toContain('radicale is not installed: tests of calendars on a real server will not run.')
  expect(run(bin, 'start', { HATCHWAY_NO_INSTALL: '1' }).stderr).toBe('')
})

test('a purpose that does not exist is refused', () => {
  expect(run(machine({}), 'fly')).toMatchObject({ status: 64 })
  expect(run(machine({}), 'toString')).toMatchObject({ status: 64 })
})
