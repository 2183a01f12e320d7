import { defineConfig } from '@hatchway/host/config'

/** Copy to hatchway.config.ts and keep what you change. Every value here is the default; docs/configuration.md explains them. */
export default defineConfig({
  data: 'data',
  durability: 'full',
  events: 'auto',
  sweepMs: 60_000,
  pollMinMs: 5,
  pollMaxMs: 1000,
  graceMs: 2000,
  limits: {
    fileBytes: 1_048_576,
    jsonDepth: 64,
    commandsPerMinute: 60_000,
    filesWaiting: 50_000,
    openTasks: 1000,
    openRequests: 1000,
    openTodos: 1000,
    errorBytes: 268_435_456,
  },
  keep: {
    commands: 1_000_000,
    messages: 1_000_000,
    runs: 10_000,
    audit: 1_000_000,
  },
  services: { plugins: [], questionMs: 600_000, unreadMs: 3_600_000 },
  memory: { enabled: 'yes', perGroup: 100_000, contentBytes: 16_384, groupBytes: 268_435_456 },
  logLevel: 'info',
  // timezone: 'Europe/Lisbon',
  // container: { uid: 1000, gid: 1000 },
  // mcp: { files: { command: ['npx', '-y', '@modelcontextprotocol/server-filesystem', '/srv/shared'], groups: 'all' } },
  // calendars: { home: { url: 'https://dav.example.org/', username: 'ana', passwordVariable: 'CALENDAR_PASSWORD' } },
})
