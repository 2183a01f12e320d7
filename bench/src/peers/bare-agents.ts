import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { RunStart } from '@hatchway/protocol'
import { startPiped } from '../children.ts'
import { folderOf, jidOf } from '../messages.ts'

const program = fileURLToPath(new URL('../../../packages/agent/dist/agent.mjs', import.meta.url))

const startOf = (group: number, text: string): RunStart => ({
  version: 1,
  run_id: `bare-${group}`,
  kind: 'chat',
  group: { folder: folderOf(group), name: folderOf(group), jid: jidOf(group), main: false },
  assistant: 'Hatch',
  timezone: 'UTC',
  session_id: null,
  model: 'stand-in',
  model_api: 'completions',
  task: null,
  inputs: [{ id: '1', text, sender: 'ann', sender_name: 'Ann', timestamp: new Date().toISOString() }],
  context: [],
  driver: { name: 'assistant' },
  events: 'auto',
})

/**
 * The agent's program as it runs in a sandbox, without the sandbox, without a host, and with the model right beside it.
 * `answered` resolves when it has said its answer; then it waits for more, as in a session.
 */
export const startBareAgent = (base: string, group: number, socket: string, text: string) => {
  const home = join(base, folderOf(group))
  for (const name of ['ipc/input', 'group']) mkdirSync(join(home, name), { recursive: true })
  const done = Promise.withResolvers<string>()
  const environment = {
    HOME: home,
    HATCHWAY_IPC: join(home, 'ipc'),
    HATCHWAY_GROUP_DIR: join(home, 'group'),
    ANTHROPIC_UNIX_SOCKET: socket,
  }
  const agent = startPiped(
    process.execPath,
    [program, 'run'],
    line => {
      const event = JSON.parse(line.slice(line.indexOf('{')))
      if (event.type === 'result') done.resolve(event.text)
      if (event.type === 'error') done.reject(new Error(event.message))
    },
    environment,
  )
  agent.say(JSON.stringify(startOf(group, text)))
  agent.close()
  return {
    pid: agent.pid,
    answered: Promise.race([done.promise, agent.gone.then(error => Promise.reject(error))]),
    kill: agent.kill,
  }
}
