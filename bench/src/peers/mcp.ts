import { startChild } from '../children.ts'
import type { Absent, Contender } from '../contenders.ts'
import type { HatchwayOptions, SandboxName } from '../hatchway.ts'
import { asNumbers, asText } from '../shape.ts'

/** an engine has to be started, and its image made */
const beginSeconds = 120

/** A tool of the MCP server in a sandbox, called until its receipt has come back, by a group of its own. */
export const mcpContender = async (
  name: string,
  sandbox: SandboxName,
  options: HatchwayOptions,
  group: number,
): Promise<Contender | Absent> => {
  const file = new URL('./mcp.process.ts', import.meta.url)
  const client = startChild(file, `MCP client of ${name}`, { tidies: true })
  const missing = await client.call('begin', { name: sandbox, options, group }, beginSeconds)
  if (missing !== undefined) {
    await client.end()
    return { name, missing: asText(missing) }
  }
  return {
    name,
    block: async count => asNumbers(await client.call('ask', count)),
    end: client.end,
  }
}
