import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createBubblewrap } from './bubblewrap.ts'
import { findProgram } from './command.ts'
import {
  agentUser,
  collect,
  describeEnding,
  describeIsolation,
  describeLimits,
  describeModel,
  describeOrphans,
  elsewhere,
  missing,
  prepare,
  type Subject,
  specOf,
} from './testing/suite.ts'

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
    describe('bubblewrap as an ordinary user', () => {
      const user = { uid: 1000, gid: 1000 }
      const as = () => elsewhere({ errand }, user)
      describeIsolation('bubblewrap as an ordinary user', as, user, true)
      describeEnding('bubblewrap as an ordinary user', as, user, true)
      describeLimits('bubblewrap as an ordinary user', as, user, true)
    })
  }
}
