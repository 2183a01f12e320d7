import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findProgram } from '../../host/src/base/programs.ts'
import { openInstallation } from '../src/daemon/installation.ts'
import { rigService } from '../src/paths.ts'
import { until } from '../src/until.ts'

/** An agent that asks the host and does not wait: what was accepted is done, and no answer is left lying. */
const missing = findProgram('bwrap') ? undefined : 'bwrap'
const attempt = missing === undefined || process.env.CI === 'true' ? test : test.skip

const request = (id: string, tool: string, input: object) =>
  JSON.stringify({ version: 1, id, type: 'call_service', payload: { tool, arguments: input } })

attempt(
  `answers for a container that is gone are not kept${missing ? ` (needs ${missing})` : ''}`,
  async () => {
    const put = (name: string, text: string) => `echo '${text}' > /workspace/ipc/tasks/${name}.json`
    const agent = [
      'cat > /dev/null',
      put('a', request('gone-todo', 'add_todo', { content: 'asked and left' })),
      put('b', request('gone-wait', 'wait_once', { gate: 'gone' })),
      'while [ ! -e /workspace/ipc/responses/gone-todo.json ]; do sleep 0.05; done',
      'echo left',
    ].join('; ')
    let rig = ''
    const installation = await openInstallation({
      sandbox: 'bubblewrap',
      environment: home => {
        rig = home
        const file = join(home, 'hatchway.config.mjs')
        const config = {
          agents: { driver: 'command', command: ['/bin/sh', '-c', agent], idleMs: 100 },
          services: { plugins: [rigService] },
        }
        writeFileSync(file, `export default ${JSON.stringify(config)}`)
        return { HATCHWAY_CONFIG: file, HATCHWAY_RIG_DIR: home }
      },
    })
    expect(await installation.say('go')).toContain('left')
    await until(async () => (await installation.runs()).every(({ status }) => status !== 'running'))
    const responses = () => readdirSync(join(installation.data, 'ipc', 'main', 'responses'))
    await until(async () => responses().length === 0)
    // Its answer comes now, and is nobody's any more.
    writeFileSync(join(rig, 'gone'), '')
    await until(async () => (await installation.hatchway('services', 'requests', '--json')).trim() === '[]')
    expect(responses()).toEqual([])
    const todos = await installation.hatchway(
      'post',
      '--group',
      'main',
      '--type',
      'call_service',
      '--payload',
      JSON.stringify({ tool: 'list_todos', arguments: {} }),
      '--wait',
    )
    expect(todos).toContain('asked and left')
  },
)
