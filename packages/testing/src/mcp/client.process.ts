import { pino } from 'pino'
import type { ServiceContext } from '../../../host/src/commands/service-tools.ts'
import { createLentServer } from '../../../host/src/plugins/mcp/lent-server.ts'

/**
 * What lends MCP servers, as the conformance suite wants a client: it is started with the address of a server, calls
 * each tool once with whatever fits the schema, and ends.
 */
const url = process.argv.at(-1) ?? ''
const log = pino({ level: 'silent' })
const service = createLentServer({
  name: 'suite',
  settings: { url, groups: 'all' },
  environment: process.env,
  version: '1.0.0',
  leaveFile: async (_, name) => name,
})
const context: ServiceContext = {
  group: { folder: 'main', jid: 'web:main', name: 'Main', main: true },
  requestId: 'request',
  signal: AbortSignal.timeout(20_000),
  progress: () => {},
  log,
  timezone: 'UTC',
}

const argumentsFor = (schema: Record<string, unknown>) =>
  Object.fromEntries(Object.keys(Object(schema.properties)).map(name => [name, 1]))

const { promise: settled, resolve } = Promise.withResolvers<void>()
await service.start?.({ changed: () => service.state?.().ok && resolve(), log })
await settled
for (const tool of service.tools()) {
  if (tool.kind === 'later') await tool.call(argumentsFor(tool.inputSchema), context)
}
await service.stop?.()
