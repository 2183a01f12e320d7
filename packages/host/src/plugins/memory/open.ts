import { join } from 'node:path'
import type { z } from 'zod'
import type { BuiltInHost, Contributions } from '../../plugin-api/types.ts'
import { hasFullTextSearch } from './database/full-text.ts'
import type { memorySchema } from './settings.ts'

export async function open(host: BuiltInHost<z.output<typeof memorySchema>>): Promise<Contributions> {
  const { settings, durability } = host
  if (!host.isDaemon || settings.enabled === 'no') return {}
  if (!hasFullTextSearch()) {
    const text = `Memories need Node 22.16 or newer, and this is ${process.versions.node}. Use a newer one, or set memory.enabled to "no".`
    return { services: [{ name: 'memory', tools: () => [], state: () => ({ ok: false, text }) }] }
  }
  const { createMemoryService } = await import('./service.ts')
  const directory = join(host.layout.state, 'memory')
  return { services: [createMemoryService({ directory, limits: settings, durability })] }
}
