import { afterAll, describe, expect, test } from 'vitest'
import { preparePodman } from '../../../testing/src/sandboxes/engines.ts'
import {
  agentUser,
  collect,
  describeClientEnded,
  describeEnding,
  describeIsolation,
  describeLeftovers,
  describeLimits,
  describeModel,
  describeNeverBegun,
  describeOrphans,
  describeSidecar,
  missing,
  prepare,
  specOf,
} from '../../../testing/src/sandboxes/suite.ts'
import { createPodman } from './podman.ts'
import type { SandboxSpec } from './types.ts'

const engine = await preparePodman()
afterAll(() => engine?.stop())

if (!engine) missing('Podman (podman and runc, as root)')
else {
  describe('podman', () => {
    const sandbox = createPodman(engine.options)
    test('it is found, and a run has been tried', async () => {
      expect(await sandbox.check()).toMatchObject({ available: true })
    })

    describeIsolation('podman', () => sandbox)
    describeModel('podman', () => sandbox)
    describeEnding('podman', () => sandbox)
    describeLimits('podman', () => sandbox)
    const subject = () => ({
      sandbox,
      user: agentUser,
      errand: (spec: SandboxSpec) => ({ sandbox: 'podman' as const, options: engine.options, spec }),
    })
    describeOrphans('podman', subject, true)
    describeNeverBegun('podman', subject, engine.ask)
    describeClientEnded('podman', subject, engine.ask)
    describeLeftovers('podman', subject, engine.ask)
    describeSidecar('podman', subject, async () => (await engine.ask('ps', '--all', '--quiet')).stdout)

    test('an image that is missing ends the run with a sentence that says what to do', async () => {
      const started = await sandbox.start(
        specOf(prepare(agentUser), '', { image: 'localhost/no/such:image' }),
      )
      expect((await collect(started)).problem).toContain('Run: podman pull localhost/no/such:image')
    })

    test('a Podman that does not work is not available, and a start says why', async () => {
      const broken = createPodman({ ...engine.options, globalArguments: ['--no-such-option'] })
      expect(await broken.check()).toMatchObject({ available: false })
      const end = await collect(await broken.start(specOf(prepare(agentUser), '')))
      expect(end.problem).toContain('Podman does not answer')
    })
  })
}
