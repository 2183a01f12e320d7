import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openBridge } from '../src/mcp/bridge.ts'
import { projectRoot } from '../src/paths.ts'

/**
 * The official conformance suite against both ends that speak MCP here. deviations.yml names what is known to fail, and
 * a scenario in it that passes fails the test, too. docs/services.md and docs/agents.md say why.
 */
const place = join(import.meta.dirname, '..', 'src', 'mcp')
const suite = join(place, 'node_modules', '@modelcontextprotocol', 'conformance', 'dist', 'index.js')
const deviations = join(place, 'deviations.yml')

const run = (folder: string, ...args: string[]) =>
  new Promise<{ code: number; said: string }>(resolve => {
    const known = ['--expected-failures', deviations, '--output-dir', folder]
    execFile(process.execPath, [suite, ...args, ...known], { cwd: folder }, (error, out, err) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : error ? -1 : 0, said: out + err }),
    )
  })

function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-conformance-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

test.each(['initialize', 'tools_call', 'sse-retry', 'elicitation-sep1034-client-defaults'])(
  'the client that lends servers: %s',
  async scenario => {
    const command = `${process.execPath} ${join(place, 'client.process.ts')}`
    const { code, said } = await run(
      temporaryFolder(),
      'client',
      '--command',
      command,
      '--scenario',
      scenario,
    )
    expect(code, said).toBe(0)
  },
)

test.each(['server-initialize', 'ping', 'tools-list', 'logging-set-level'])(
  'the server inside a sandbox: %s',
  async scenario => {
    const ipc = temporaryFolder()
    for (const name of ['messages', 'tasks', 'input', 'responses']) mkdirSync(join(ipc, name))
    const agent = join(projectRoot, 'packages', 'agent', 'src', 'main.ts')
    const bridge = await openBridge(process.execPath, [agent, 'mcp'], {
      PATH: process.env.PATH ?? '',
      HATCHWAY_IPC: ipc,
    })
    onTestFinished(bridge.close)
    const { code, said } = await run(temporaryFolder(), 'server', '--url', bridge.url, '--scenario', scenario)
    expect(code, said).toBe(0)
  },
)
