import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { clearUp, processesOf } from './leftovers.ts'

test.runIf(process.platform === 'linux')(
  'what a run of the tests leaves behind is named, ended and removed',
  async () => {
    const root = mkdtempSync(join(tmpdir(), 'hatchway-left-'))
    const log = join(root, 'log')
    writeFileSync(log, '')
    mkdirSync(join(root, 'node-compile-cache'))
    const left = [
      spawn('sleep', ['1000'], { env: { HOME: root }, stdio: 'ignore' }),
      spawn('sleep', ['1000'], { env: {}, cwd: root, stdio: 'ignore' }),
      spawn('sleep', ['1000'], { env: {}, stdio: ['ignore', openSync(log, 'a'), 'ignore'] }),
      spawn(process.execPath, ['-e', 'setTimeout(() => {}, 1e6)', log], { env: {}, stdio: 'ignore' }),
    ]
    const other = mkdtempSync(join(tmpdir(), 'hatchway-left-'))
    const stranger = spawn('sleep', ['1000'], { env: { HOME: other }, stdio: 'ignore' })
    onTestFinished(() => {
      stranger.kill('SIGKILL')
      rmSync(other, { recursive: true })
    })
    const ended = Promise.all(left.map(child => once(child, 'exit')))
    await expect.poll(() => processesOf(root).length).toBe(left.length)
    const said = await clearUp(root, 0)
    expect(said.toSorted()).toEqual(
      [
        ...left.map(({ pid, spawnargs }) => `  process ${pid}: ${spawnargs.join(' ')}`),
        `  ${log}`,
      ].toSorted(),
    )
    expect(await ended).toEqual(left.map(() => [null, 'SIGKILL']))
    expect(existsSync(root)).toBe(false)
    expect(stranger.exitCode ?? stranger.signalCode).toBeNull()
    expect(await clearUp(root, 0)).toEqual([])
  },
)
