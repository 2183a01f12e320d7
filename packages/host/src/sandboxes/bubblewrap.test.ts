import { spawnSync } from 'node:child_process'
import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  agentUser,
  collect,
  describeEnding,
  describeIsolation,
  describeLimits,
  describeModel,
  describeOrphans,
  elsewhere,
  firstLine,
  missing,
  prepare,
  type Subject,
  specOf,
} from '../../../testing/src/sandboxes/suite.ts'
import { findProgram } from '../base/programs.ts'
import { createBubblewrap } from './bubblewrap.ts'

const isRoot = process.getuid?.() === 0
const errand: Subject['errand'] = spec => ({ sandbox: 'bubblewrap', options: { graceMs: 500 }, spec })

if (!findProgram('bwrap')) missing('bubblewrap')
else {
  const who = isRoot ? 'bubblewrap as root' : 'bubblewrap as an ordinary user'
  describe(who, () => {
    const sandbox = createBubblewrap({ graceMs: 500 })
    test('it is found, and a run has been tried', async () => {
      expect(await sandbox.check()).toMatchObject({ available: true })
    })
    describeIsolation(who, () => sandbox)
    describeModel(who, () => sandbox)
    describeEnding(who, () => sandbox)
    describeLimits(who, () => sandbox)
    // It goes with its host, so there is nothing left to be found.
    describeOrphans(who, () => ({ sandbox, user: agentUser, errand }), false)

    test('a mount that is not there is told in words', async () => {
      const ground = prepare(agentUser)
      const mounts = [...ground.mounts, { from: '/no/such/place', to: '/workspace/x', writable: false }]
      const end = await collect(await sandbox.start(specOf(ground, '', { mounts })))
      expect(end.problem).toContain('/no/such/place')
    })

    test('a program that is not there is told in words', async () => {
      const end = await collect(
        await sandbox.start(specOf(prepare(agentUser), '', { command: ['/no/such'] })),
      )
      expect(end.code).not.toBe(0)
      expect(`${end.problem} ${end.errors}`).toContain('/no/such')
    })

    test('what whoever started the host has left open is not open inside', () => {
      const spec = specOf(prepare(agentUser), '', { command: ['/bin/ls', '/proc/self/fd/'] })
      const runner = fileURLToPath(
        new URL('../../../testing/src/sandboxes/runner.process.ts', import.meta.url),
      )
      const begin = 'exec 63</etc/hostname 200</; exec "$0" "$@" 3>&1'
      const words = [process.execPath, runner, JSON.stringify(errand(spec))]
      const { stdout } = spawnSync('/bin/bash', ['-c', begin, ...words], { encoding: 'utf8' })
      expect(stdout).toContain('"code":0')
      expect(stdout.match(/^\d+$/gm)).toEqual(['0', '1', '2', '3'])
    })

    test('without the program it is not available, and a start says what to install', async () => {
      const absent = createBubblewrap({ program: '/no/such/bwrap' })
      expect(await absent.check()).toMatchObject({
        available: false,
        reason: expect.stringContaining('apt-get install bubblewrap'),
      })
      const end = await collect(await absent.start(specOf(prepare(agentUser), '')))
      expect(end.problem).toContain('apt-get install bubblewrap')
    })

    test('one that is removed while the host runs is told of as missing, and found when it is back', async () => {
      const ground = prepare(agentUser)
      const program = join(ground.home, 'bwrap')
      copyFileSync(findProgram('bwrap') ?? '', program)
      const own = createBubblewrap({ program })
      expect(await own.check()).toMatchObject({ available: true })
      rmSync(program)
      const end = await collect(await own.start(specOf(ground, '')))
      expect(end.problem).toContain('There is no program `bwrap`')
      copyFileSync(findProgram('bwrap') ?? '', program)
      expect(await collect(await own.start(specOf(ground, '')))).toMatchObject({ code: 0 })
    })
  })

  if (isRoot) {
    test('bubblewrap: not even root inside can change a setting of the kernel', async () => {
      const script = `
        const fs = require('node:fs')
        const settings = ['sys/kernel/core_pattern', 'sys/vm/drop_caches', 'sys/net/ipv4/ip_forward', 'mtrr', 'self/oom_score_adj']
        console.log(settings.map(name => { try { fs.closeSync(fs.openSync('/proc/' + name, 'r+')); return name } catch { return '' } }).join(''))`
      const spec = specOf(prepare(agentUser), script, { user: { uid: 0, gid: 0 } })
      expect(await collect(await createBubblewrap().start(spec))).toMatchObject({ code: 0, output: '\n' })
    })

    test('bubblewrap: a run that has used up what the kernel counts by user leaves other users theirs', async () => {
      const inotify =
        'my $made = 0; $made++ while $made < 100000 && syscall(294, 0) >= 0; print "$made\\n"; $| = 1;'
      const run = async (uid: number, then: string) => {
        const user = { uid, gid: uid }
        const command = ['/usr/bin/perl', '-e', `$| = 1; ${inotify} ${then}`]
        const started = await createBubblewrap({ graceMs: 500 }).start(
          specOf(prepare(user), '', { user, command }),
        )
        onTestFinished(() => started.kill())
        return Number(await firstLine(started))
      }
      const [greedy, other] = [1_879_100_001, 1_879_100_002]
      expect(await run(greedy, 'sleep 1000')).toBeGreaterThan(0)
      expect(await run(greedy, '')).toBe(0)
      expect(await run(other, '')).toBeGreaterThan(0)
    })

    describe('bubblewrap as an ordinary user', () => {
      const user = { uid: 1000, gid: 1000 }
      const as = () => elsewhere({ errand }, user)
      describeIsolation('bubblewrap as an ordinary user', as, user, true)
      describeEnding('bubblewrap as an ordinary user', as, user, true)
      describeLimits('bubblewrap as an ordinary user', as, user, true)
    })
  }
}
