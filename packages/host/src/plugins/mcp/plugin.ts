import { version } from '../../base/version.ts'
import { definePlugin } from '../../plugin-api/define.ts'
import { lentServersSchema } from './settings.ts'

/** MCP servers that the host runs or reaches, and lends to agents. */
export const mcp = definePlugin({
  name: 'mcp',
  version,
  settings: lentServersSchema,
  load: () => import('./open.ts'),
})
