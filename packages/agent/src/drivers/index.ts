import type { RunStart } from '@hatchway/protocol'
import type { Driver } from './types.ts'

/** Loaded when asked for: a run pays for one driver, not for all. */
export const drivers: Record<RunStart['driver']['name'], () => Promise<Driver>> = {
  concierge: async () => (await import('./concierge/concierge.ts')).concierge,
  claude: async () => (await import('./claude/claude.ts')).claude,
  assistant: async () => (await import('./assistant/assistant.ts')).assistant,
  acp: async () => (await import('./acp/acp.ts')).acp,
  command: async () => (await import('./command.ts')).command,
}
