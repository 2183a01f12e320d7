import { join } from 'node:path'

/** Where a run finds its things. In a sandbox these are fixed places; without one the host names them. */
export interface RunEnvironment {
  ipc: string
  /** `input/` of it: follow-ups, and the wish to finish */
  input: string
  groupDirectory: string
  globalDirectory: string
  /** how to start this very program as the MCP server of the run */
  mcpServer: { command: string; args: string[]; env: Record<string, string> }
  variables: NodeJS.ProcessEnv
}

export function readEnvironment(
  variables: NodeJS.ProcessEnv = process.env,
  script = process.argv[1] ?? '',
): RunEnvironment {
  const ipc = variables.HATCHWAY_IPC || '/workspace/ipc'
  return {
    ipc,
    input: join(ipc, 'input'),
    groupDirectory: variables.HATCHWAY_GROUP_DIR || '/workspace/group',
    globalDirectory: variables.HATCHWAY_GLOBAL_DIR || '/workspace/global',
    mcpServer: { command: process.execPath, args: [script, 'mcp'], env: forMcpServer(variables) },
    variables,
  }
}

/** The server needs no key and no socket of the model, so it is not given them. */
function forMcpServer(variables: NodeJS.ProcessEnv): Record<string, string> {
  const wanted = /^(HATCHWAY_.*|PATH|HOME|LANG|LC_ALL|TZ|TMPDIR|NODE_.*)$/
  const env: Record<string, string> = {}
  for (const [name, value] of Object.entries(variables)) {
    if (value !== undefined && wanted.test(name)) env[name] = value
  }
  return env
}
