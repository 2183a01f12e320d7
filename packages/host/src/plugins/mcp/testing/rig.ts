import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { afterEach, onTestFinished } from 'vitest'
import { backoff } from '../../../base/retry.ts'
import type { LaterTool, Service, ServiceContext, Step } from '../../../commands/service-tools.ts'
import { createLentServer } from '../lent-server.ts'
import { type LentServer, lentServersSchema } from '../settings.ts'
import type { Timing } from '../timing.ts'

/** A lent server as the host has it, with real processes, and short patience where a test has to wait for the end of it. */
export interface Rig {
  service: Service
  /** what it has left for agents */
  files: ReadonlyMap<string, Buffer>
  /** lines that were logged as a warning or worse */
  warnings: string[]
  tool(name: string): LaterTool
  call(name: string, input?: object, context?: Partial<ServiceContext>): Promise<Record<string, unknown>>
  until(condition: (state: { ok: boolean; text: string }) => boolean): Promise<void>
  up(): Promise<void>
}

export const everythingServer = fileURLToPath(
  import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'),
)
export const filesystemServer = fileURLToPath(
  import.meta.resolve('@modelcontextprotocol/server-filesystem/dist/index.js'),
)
export const oddServer = fileURLToPath(new URL('./odd-server.process.ts', import.meta.url))

const quick: Partial<Timing> = {
  connectMs: 20_000,
  waitMs: 10_000,
  graceMs: 1000,
  pauseMs: backoff({ firstMs: 10, longestMs: 50 }),
  settleMs: 20,
}

/** It goes once the servers of the test have ended. */
export function temporaryFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'hatchway-lent-')))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

const begun: Service[] = []
afterEach(async () => {
  await Promise.all(begun.splice(0).map(service => service.stop?.()))
})

export function lend(
  settings: Record<string, unknown>,
  timing: Partial<Timing> = {},
  environment = process.env,
): Rig {
  const servers = lentServersSchema.parse({ odd: { groups: 'all', ...settings } })
  if (!servers.odd) throw new Error('no server')
  const files = new Map<string, Buffer>()
  const service = createLentServer({
    name: 'odd',
    settings: servers.odd,
    environment,
    version: '1.0.0',
    leaveFile: async (folder, name, content) => {
      files.set(name, content)
      return `/${folder}/${name}`
    },
    timing: { ...quick, ...timing },
  })
  begun.push(service)
  const warnings: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => warnings.push(line) })
  const wake = new Set<() => void>()
  const changed = () => {
    for (const look of [...wake]) look()
  }
  void service.start?.({ changed, log })
  const state = () => service.state?.() ?? { ok: true, text: '' }
  const until: Rig['until'] = condition =>
    new Promise(resolve => {
      const look = () => {
        if (!condition(state())) return
        wake.delete(look)
        resolve()
      }
      wake.add(look)
      look()
    })
  const tool = (name: string) => {
    const found = service.tools().find(candidate => candidate.name === name)
    if (found?.kind !== 'later') throw new Error(`no tool ${name}`)
    return found
  }
  return {
    service,
    files,
    warnings,
    tool,
    async call(name, input = {}, context = {}) {
      const answer = await tool(name).call(input, { ...contextOf(log), ...context })
      if (typeof answer !== 'object' || answer === null) throw new Error('no answer')
      return { ...answer }
    },
    until,
    up: () => until(({ ok }) => ok),
  }
}

const contextOf = (log: ServiceContext['log']): ServiceContext => ({
  group: { folder: 'main', jid: 'web:main', name: 'Main', main: true },
  requestId: 'request',
  signal: new AbortController().signal,
  progress: () => {},
  log,
  timezone: 'UTC',
})

/** Keeps each step it is told. */
export function steps(): { steps: Step[]; progress(step: Step): void } {
  const kept: Step[] = []
  return { steps: kept, progress: step => void kept.push(step) }
}

/** A program in the place of a server. */
export const script = (code: string): Pick<LentServer, 'command'> => ({
  command: [process.execPath, '-e', code],
})
