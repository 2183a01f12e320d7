import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { configFor } from '../../../testing/src/daemon/in-process.ts'
import { type EngineRig, startDockerEngine } from '../../../testing/src/sandboxes/engines.ts'
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
  firstLine,
  missing,
  prepare,
  specOf,
  withWord,
} from '../../../testing/src/sandboxes/suite.ts'
import { layoutOf } from '../base/layout.ts'
import { until } from '../base/pause.ts'
import { createSandboxes } from './choose.ts'
import { createDocker } from './docker.ts'
import type { Sandbox, SandboxSpec } from './types.ts'

const engine: EngineRig | undefined = await startDockerEngine()
afterAll(() => engine?.stop())

if (!engine) missing('a Docker engine (dockerd and docker, as root)')
else {
  describe('docker', () => {
    let sandbox: Sandbox
    beforeAll(() => {
      sandbox = createDocker(engine.options)
    })
    test('it is found, and a run has been tried', async () => {
      expect(await sandbox.check()).toMatchObject({ available: true })
    })

    test('the container it is tried with carries the installation, so that it is found if we are killed', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'hatchway-docker-words-'))
      onTestFinished(() => rmSync(folder, { recursive: true }))
      const [program, words] = [join(folder, 'docker'), join(folder, 'words')]
      writeFileSync(program, `#!/bin/sh\necho "$@" >> ${words}\nexec docker "$@"\n`, { mode: 0o755 })
      const own = createDocker({ ...engine.options, program, installation: 'house' })
      expect(await own.check()).toMatchObject({ available: true })
      expect(readFileSync(words, 'utf8')).toMatch(/^run .*hatchway\.installation=house /m)
    })

    test('whatever it mounts lies in the data directory, because a service has a /tmp of its own', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'hatchway-docker-mounts-'))
      onTestFinished(() => rmSync(folder, { recursive: true }))
      const [program, words] = [join(folder, 'docker'), join(folder, 'words')]
      writeFileSync(program, `#!/bin/sh\necho "$@" >> ${words}\nexec docker "$@"\n`, { mode: 0o755 })
      const data = join(folder, 'data')
      const { state } = layoutOf(data)
      mkdirSync(state, { recursive: true })
      const own = createSandboxes(configFor(data), { docker: { ...engine.options, program } }).docker
      expect(await own.check()).toMatchObject({ available: true })
      const said = readFileSync(words, 'utf8')
      expect(said).toContain(`${join(state, 'runs', 'hatchway-run-')}`)
      expect(said.replaceAll(folder, '')).not.toContain(tmpdir())
      expect(readdirSync(join(state, 'runs'))).toEqual([])
    })

    describeIsolation('docker', () => sandbox)
    describeModel('docker', () => sandbox)
    describeEnding('docker', () => sandbox)
    describeLimits('docker', () => sandbox)
    const subject = () => ({
      sandbox,
      user: agentUser,
      errand: (spec: SandboxSpec) => ({ sandbox: 'docker' as const, options: engine.options, spec }),
    })
    describeOrphans('docker', subject, true)
    describeNeverBegun('docker', subject, engine.ask)
    describeClientEnded('docker', subject, engine.ask)
    describeLeftovers('docker', subject, engine.ask)
    describeSidecar('docker', subject, async () => (await engine.ask('ps', '--all', '--quiet')).stdout)

    test('an image that is missing ends the run with a sentence that says what to do', async () => {
      const started = await sandbox.start(specOf(prepare(agentUser), '', { image: 'no/such:image' }))
      const { problem } = await collect(started)
      expect(problem).toContain('no/such:image is not on this machine. Run: docker pull no/such:image')
      await started.kill()
      expect(await createDocker({ ...engine.options, image: 'no/such:image' }).check()).toMatchObject({
        available: false,
        reason: expect.stringContaining('docker pull'),
      })
    })

    test('a program that is not there is reported as the engine’s failure', async () => {
      const started = await sandbox.start(specOf(prepare(agentUser), '', { command: ['/no/such/program'] }))
      expect((await collect(started)).problem).toContain('/no/such/program')
    })

    test('an engine that hangs becomes a sentence, before the start and during it', async () => {
      const patience = { ...engine.options, answerMs: 4000, startMs: 4000 }
      const known = createDocker(patience)
      const first = await known.start(specOf(prepare(agentUser), 'process.exit(0)'))
      expect((await collect(first)).code).toBe(0)
      engine.process?.kill('SIGSTOP')
      onTestFinished(() => void engine.process?.kill('SIGCONT'))
      const unknown = createDocker(patience)
      expect(await unknown.check()).toMatchObject({ available: false })
      const before = await collect(await unknown.start(specOf(prepare(agentUser), '')))
      expect(before.problem).toMatch(/^Docker does not answer: .*did not answer within 4 s/)
      const during = await collect(await known.start(specOf(prepare(agentUser), '')))
      expect(during.problem).toMatch(/^Docker did not start the container within 4 s/)
    })

    test('an engine that is killed in the middle of a run ends it, and the next run works', async () => {
      const word = `survivor-${process.pid}`
      const ground = prepare(agentUser)
      const script = `console.log('up'); setInterval(() => {}, 1000)`
      const spec = specOf(ground, script)
      const started = await sandbox.start({ ...spec, command: [...(spec.command ?? []), word] })
      const ending = collect(started)
      await firstLine(started)
      engine.process?.kill('SIGKILL')
      const { problem } = await ending
      expect(problem).toMatch(/^Docker stopped while the run was under way: /)
      await started.kill()
      expect(await until(10_000, () => withWord(word).length === 0)).toBe(true)
      await engine.restart()
      const next = await collect(await sandbox.start(specOf(ground, `console.log('again')`)))
      expect(next).toMatchObject({ code: 0, output: 'again\n' })
    })
  })
}
