import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { onTestFinished } from 'vitest'
import { z } from 'zod'
import type { LaterTool } from '../../../commands/service-tools.ts'
import { createMemoryService, type MemoryServiceOptions } from '../service.ts'

const memory = z.strictObject({
  key: z.string(),
  content: z.string(),
  category: z.string(),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
})
const answers = {
  saved: memory.omit({ content: true }).extend({ replaced: z.boolean() }),
  recalled: z.strictObject({ memories: z.array(memory), more: z.boolean() }),
  listed: z.strictObject({ memories: z.array(memory), more: z.boolean(), total: z.int() }),
  forgotten: z.strictObject({ key: z.string(), forgotten: z.boolean() }),
}

/** A group's agent, as far as memories go. What it is answered is checked. */
function asGroup(tools: ReadonlyMap<string, LaterTool>, folder: string, jid = `${folder}@chat`) {
  const call = async (
    name: string,
    input: Record<string, unknown>,
    signal = new AbortController().signal,
  ) => {
    const tool = tools.get(name)
    if (!tool) throw new Error(`there is no tool ${name}`)
    const checked = tool.check(input)
    if (!checked.ok) throw new Error(`invalid_field ${checked.message}`)
    return tool.call(checked.input, {
      group: { folder, jid, name: folder, main: false },
      requestId: 'request',
      signal,
      progress() {},
      log: pino({ level: 'silent' }),
      timezone: 'UTC',
    })
  }
  return {
    call,
    save: async (key: string, content: string, category?: string) =>
      answers.saved.parse(await call('save_memory', { key, content, ...(category ? { category } : {}) })),
    recall: async (query: string, more: { category?: string; limit?: number } = {}) =>
      answers.recalled.parse(await call('recall_memories', { query, ...more })),
    keys: async (query: string, more: { category?: string; limit?: number } = {}) =>
      answers.recalled
        .parse(await call('recall_memories', { query, ...more }))
        .memories.map(({ key }) => key),
    forget: async (key: string) => answers.forgotten.parse(await call('forget_memory', { key })),
    list: async (more: { category?: string; limit?: number; offset?: number } = {}) =>
      answers.listed.parse(await call('list_memories', more)),
  }
}

/** The real service on a folder of its own, which goes when the test is over. */
export function openMemory(options: Partial<MemoryServiceOptions> = {}) {
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), 'hatchway-memory-'))
  const service = createMemoryService({ durability: 'process', ...options, directory })
  const lines: string[] = []
  const tools = new Map<string, LaterTool>()
  for (const tool of service.tools()) if (tool.kind === 'later') tools.set(tool.name, tool)
  onTestFinished(async () => {
    await service.stop?.()
    rmSync(directory, { recursive: true, force: true })
  })
  return {
    directory,
    service,
    tools,
    /** what was logged */
    lines,
    start: () =>
      service.start?.({ changed() {}, log: pino({ base: null }, { write: line => void lines.push(line) }) }),
    group: (folder: string, jid?: string) => asGroup(tools, folder, jid),
  }
}
