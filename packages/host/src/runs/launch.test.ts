import { randomUUID } from 'node:crypto'
import { lstatSync } from 'node:fs'
import type { RunStart } from '@hatchway/protocol'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { openLive } from '../../../testing/src/daemon/in-process.ts'
import { createOwners } from '../base/owners.ts'
import { inside } from '../sandboxes/mounts.ts'
import { createProcessSandbox } from '../sandboxes/process.ts'
import type { Sandbox, SandboxSpec } from '../sandboxes/types.ts'
import { createLaunch } from './launch.ts'

const isRoot = process.getuid?.() === 0

test('a run is told nothing of its id by what it has mounted, and each group’s runs have their own user', async () => {
  const live = await openLive({ web: { enabled: 'no' } })
  onTestFinished(() => live.close())
  const { config, layout, host } = live
  const specs: SandboxSpec[] = []
  const sandbox: Sandbox = {
    ...createProcessSandbox(),
    name: 'bubblewrap',
    isolated: true,
    start(spec) {
      specs.push(spec)
      const model = spec.mounts.find(({ to }) => to === inside.model)
      if (isRoot) expect(lstatSync(`${model?.from}/model.sock`).uid).toBe(spec.user.uid)
      return createProcessSandbox().start({ ...spec, command: ['/bin/true'], workingDirectory: '/' })
    },
  }
  const launch = createLaunch({
    config,
    layout,
    installation: randomUUID(),
    owners: createOwners(config, host.store),
    store: host.store.agents,
    environment: { ANTHROPIC_API_KEY: 'sk-test' },
    log: pino({ level: 'silent' }),
    now: () => new Date(),
  })
  for (const folder of ['a', 'b']) {
    const about = { folder, jid: `web:${folder}`, name: folder, main: false }
    await host.addGroup({ ...about, dialect: 'hatchway' })
    const group = host.store.group(folder)
    if (!group) throw new Error('it is not registered')
    const start: RunStart = {
      ...{
        version: 1,
        run_id: randomUUID(),
        kind: 'chat',
        group: about,
        assistant: 'Hatch',
        timezone: 'UTC',
      },
      ...{ session_id: null, model: null, task: null, inputs: [], context: [], events: 'auto' },
      driver: { name: 'command', command: ['true'] },
    }
    const started = await launch(start, group, sandbox)
    await started.exited
    const { command, environment, mounts, workingDirectory } = specs.at(-1) ?? {}
    expect(mounts?.map(({ to }) => to)).toContain(inside.model)
    expect(JSON.stringify({ command, environment, mounts, workingDirectory })).not.toContain(start.run_id)
  }
  const users = specs.map(({ user }) => user.uid)
  expect(users).toEqual(isRoot ? ['a', 'b'].map(host.store.agentUser) : users.map(() => process.getuid?.()))
  if (isRoot) expect(users[0]).not.toBe(users[1])
})
