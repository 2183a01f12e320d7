import { describe, expect, test } from 'vitest'
import {
  agentUser,
  collect,
  describeEnding,
  describeOrphans,
  prepare,
  type Subject,
  specOf,
} from '../../../testing/src/sandboxes/suite.ts'
import { createProcessSandbox } from './process.ts'
import type { SandboxSpec } from './types.ts'

/** The same run, with real paths in place of the sandbox's. */
const outside = (spec: SandboxSpec): SandboxSpec => ({
  ...spec,
  command: [process.execPath, ...(spec.command ?? []).slice(1)],
  workingDirectory: spec.mounts.find(({ to }) => to === spec.workingDirectory)?.from ?? '/',
})

const sandbox = createProcessSandbox({ graceMs: 500 })
const translated = { ...sandbox, start: (spec: SandboxSpec) => sandbox.start(outside(spec)) }
const errand: Subject['errand'] = spec => ({
  sandbox: 'process',
  options: { graceMs: 500 },
  spec: outside(spec),
})

describe('process', () => {
  describeEnding('process', () => translated)
  describeOrphans('process', () => ({ sandbox: translated, user: agentUser, errand }), true)

  test('a run has its own environment and user, and nothing of the host’s environment', async () => {
    const script = `console.log(JSON.stringify([process.getuid(), Object.keys(process.env).sort()]))`
    const spec = specOf(prepare(agentUser, true), script)
    const { output } = await collect(await translated.start(spec))
    expect(JSON.parse(output)).toEqual([agentUser.uid, ['HATCHWAY_RUN', 'HOME', 'PATH']])
  })

  test('a program that is not there is told in words', async () => {
    const spec = specOf(prepare(agentUser), '', { command: ['/no/such/program'], workingDirectory: '/' })
    const end = await collect(await sandbox.start(spec))
    expect(end.problem).toContain('/no/such/program')
  })
})
