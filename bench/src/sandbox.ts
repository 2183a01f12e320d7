import { randomUUID } from 'node:crypto'
import { layoutOf } from '../../packages/host/src/base/layout.ts'
import { createLogger } from '../../packages/host/src/base/logger.ts'
import { createOwners } from '../../packages/host/src/base/owners.ts'
import { createLaunch } from '../../packages/host/src/runs/launch.ts'
import { createSandboxes } from '../../packages/host/src/sandboxes/choose.ts'
import type { SandboxProcess } from '../../packages/host/src/sandboxes/types.ts'
import {
  type EngineRig,
  preparePodman,
  startDockerEngine,
} from '../../packages/testing/src/sandboxes/engines.ts'
import type { HatchwayOptions, SandboxName } from './hatchway.ts'
import { configOf } from './host.ts'
import { folderOf, jidOf } from './messages.ts'

/** A sandbox that can be started, with the engine it needs; or why there is none. */
export interface OpenSandbox {
  /** the agent's side of the hatch for one group, as an agent has it in a run: the MCP server on the three streams */
  startMcp(group: number): Promise<SandboxProcess>
  close(): Promise<void>
}

const nothingToStop = { options: {}, stop: async () => {} }

/** Engines of the benchmark's own, in folders of their own, so that nobody's containers are met. */
const engineOf = async (name: SandboxName): Promise<Pick<EngineRig, 'options' | 'stop'> | undefined> => {
  if (name === 'docker') return startDockerEngine()
  if (name === 'podman') return preparePodman()
  return nothingToStop
}

export const openSandbox = async (
  name: SandboxName,
  options: HatchwayOptions,
): Promise<OpenSandbox | { missing: string }> => {
  const engine = await engineOf(name)
  if (engine === undefined) return { missing: `${name} cannot be had here: it needs root and its engine` }
  const config = await configOf(options)
  const sandbox = createSandboxes(config, { docker: engine.options, podman: engine.options })[name]
  const { available, reason } = await sandbox.check()
  if (!available) {
    await engine.stop()
    return { missing: reason }
  }
  const launch = createLaunch({
    config,
    layout: layoutOf(config.data),
    installation: randomUUID(),
    owners: createOwners(config, { agentUser: () => 1000 }),
    store: { addUsage: () => {} },
    environment: {},
    log: createLogger(config),
    now: () => new Date(),
  })
  const started: SandboxProcess[] = []
  return {
    async startMcp(group) {
      const folder = folderOf(group)
      const about = { folder, name: folder, jid: jidOf(group), main: false }
      const process = await launch(
        {
          version: 1,
          run_id: randomUUID(),
          kind: 'chat',
          group: about,
          assistant: config.agents.assistant,
          timezone: 'UTC',
          session_id: null,
          model: null,
          task: null,
          inputs: [],
          context: [],
          driver: { name: 'concierge' },
          events: config.events,
        },
        {
          ...about,
          dialect: 'hatchway',
          trigger: null,
          requires_trigger: false,
          channel: null,
          added_at: new Date().toISOString(),
          last_activity: null,
        },
        // All as in a run, but for what is run: the server that the agent would start.
        {
          ...sandbox,
          start: spec => sandbox.start({ ...spec, command: [...(spec.command ?? []).slice(0, -1), 'mcp'] }),
        },
      )
      started.push(process)
      return process
    },
    async close() {
      for (const process of started) await process.kill()
      await engine.stop()
    },
  }
}
