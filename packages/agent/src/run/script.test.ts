import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { runScript } from './script.ts'

function inFolder(script: string, timeoutMs = 30_000) {
  const cwd = mkdtempSync(join(tmpdir(), 'hatchway-script-'))
  onTestFinished(() => rmSync(cwd, { recursive: true, force: true }))
  return runScript(script, { cwd, env: process.env, timeoutMs, abort: new AbortController().signal })
}

test('the last line with anything on it decides', async () => {
  expect(await inFolder('echo looking; echo \'{"wakeAgent":true,"data":{"mails":3}}\'; echo')).toEqual({
    wake: true,
    data: { mails: 3 },
  })
  expect(await inFolder('echo \'{"wakeAgent":false}\'')).toEqual({ wake: false })
})

test('a flood before the last line is forgotten, not kept', async () => {
  expect(await inFolder('yes | head -c 5000000; echo; echo \'{"wakeAgent":true}\'')).toEqual({ wake: true })
})

test.each([
  ['echo hello', 'not JSON'],
  ['true', 'not JSON'],
  ['echo \'{"wakeAgent":"yes"}\'', 'lacks "wakeAgent"'],
  ['echo \'{"wakeAgent":true}\'; echo oops >&2; exit 3', 'with code 3. It said: oops'],
  ['kill -9 $$', 'by SIGKILL'],
])('“%s” wakes nobody, and says why', async (script, error) => {
  expect(await inFolder(script)).toEqual({ wake: false, error: expect.stringContaining(error) })
})

test('one that takes too long is ended with everything it started', async () => {
  const outcome = await inFolder('sleep 1000 & sleep 1000; echo \'{"wakeAgent":true}\'', 200)
  expect(outcome).toEqual({ wake: false, error: expect.stringContaining('longer than 0.2 s') })
})

test('one that leaves something running in the background is not waited for', async () => {
  expect(await inFolder('sleep 1000 & echo \'{"wakeAgent":true}\'')).toEqual({ wake: true })
})
