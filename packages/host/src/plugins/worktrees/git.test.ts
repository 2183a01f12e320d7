import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { callGit, ownEnvironment } from './git.ts'

test('git that a killed host left in a repository ends before the next host touches it', async () => {
  const home = mkdtempSync(join(tmpdir(), 'hatchway-git-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  execFileSync('git', ['init', '--quiet', home])
  const input = join(home, 'input')
  execFileSync('mkfifo', [input])
  const host = spawn(
    process.execPath,
    [
      '--input-type=module',
      '--eval',
      `import { callGit, ownEnvironment } from ${JSON.stringify(new URL('git.ts', import.meta.url).href)}
      await callGit({
        ...{ at: ${JSON.stringify(home)}, lasting: ${JSON.stringify(home)}, input: ${JSON.stringify(input)} },
        args: ['hash-object', '--stdin'],
        environment: ownEnvironment(), timeoutMs: 60_000, signal: AbortSignal.timeout(60_000),
      })`,
    ],
    { stdio: 'inherit' },
  )
  // Opened once the host reads from it; git waits for its end.
  const writer = openSync(input, 'w')
  const running = () =>
    execFileSync('ps', ['-A', '-o', 'args']).toString().includes(`${home} hash-object --stdin`)
  while (!running()) await new Promise(resolve => setTimeout(resolve, 10))
  host.kill('SIGKILL')
  await once(host, 'exit')
  expect(running()).toBe(true)

  let wasRunning: boolean | undefined
  const call = callGit({
    ...{ at: home, lasting: home, args: ['rev-parse', '--git-dir'], environment: ownEnvironment() },
    ...{ timeoutMs: 60_000, signal: AbortSignal.timeout(60_000) },
    hear() {
      wasRunning = running()
      return true
    },
  })
  // Another repository does not wait.
  const other = await callGit({
    ...{ at: '/', lasting: '/', args: ['--version'], environment: ownEnvironment() },
    ...{ timeoutMs: 60_000, signal: AbortSignal.timeout(60_000) },
  })
  expect(other.code).toBe(0)
  expect(wasRunning).toBeUndefined()
  closeSync(writer)
  expect(await call).toMatchObject({ code: 0 })
  expect(wasRunning).toBe(false)
})
