import type { Logger } from 'pino'
import type { Service, ServiceContext } from '../../commands/service-tools.ts'
import { defineService, ServiceRefusal } from '../../services/define.ts'
import { openMemoryThread } from './database/open.ts'
import type { MemoryLimits, MemoryRequest } from './database/types.ts'
import {
  defaultCategory,
  forgetMemory,
  listMemories,
  mostRecalled,
  recallMemories,
  saveMemory,
} from './tools.ts'

/**
 * What an agent keeps for later. Each group has a file of its own, so none sees another's memories, and a large one
 * slows nobody else. How memories are found is in docs/decisions/011.
 */
export interface MemoryServiceOptions {
  /** for the groups' files; outside every mount */
  directory: string
  limits?: Partial<MemoryLimits>
  durability?: 'full' | 'process'
  /** after so long without a request the thread that has the files open ends */
  idleMs?: number
  now?(): Date
}

const defaultLimits: MemoryLimits = { perGroup: 100_000, contentBytes: 16_384, groupBytes: 268_435_456 }
export function createMemoryService(options: MemoryServiceOptions): Service {
  const limits = { ...defaultLimits, ...options.limits }
  const now = options.now ?? (() => new Date())
  let log: Logger | undefined
  /** files that a person has to see to, by group */
  const damaged = new Map<string, string>()
  let changed = () => {}

  const thread = openMemoryThread({
    directory: options.directory,
    durability: options.durability ?? 'full',
    limits,
    idleMs: options.idleMs ?? 60_000,
    failed: message => log?.error(message),
  })

  async function ask(request: MemoryRequest, { group, signal }: ServiceContext): Promise<object> {
    const { folder, jid } = group
    const answer = await thread.ask({ folder, jid }, request, signal)
    if (answer.ok || answer.code !== undefined) note(folder, undefined)
    else if (answer.damaged) note(folder, answer.message)
    if (answer.ok) return answer.result
    if (answer.code !== undefined) throw new ServiceRefusal(answer.code, answer.message)
    throw new Error(answer.message)
  }

  function note(folder: string, problem: string | undefined): void {
    if (damaged.get(folder) === problem) return
    if (problem === undefined) damaged.delete(folder)
    else {
      damaged.set(folder, problem)
      log?.error({ group: folder }, problem)
    }
    changed()
  }

  return defineService({
    name: 'memory',
    tools: {
      save_memory: {
        ...saveMemory(limits),
        call: (input, context) =>
          ask(
            { do: 'save', ...input, category: input.category || defaultCategory, at: now().getTime() },
            context,
          ),
      },
      recall_memories: {
        ...recallMemories,
        call: ({ query, category, limit }, context) =>
          ask(
            {
              do: 'recall',
              query,
              category: category || undefined,
              limit: Math.min(limit, mostRecalled),
            },
            context,
          ),
      },
      forget_memory: {
        ...forgetMemory,
        call: ({ key }, context) => ask({ do: 'forget', key }, context),
      },
      list_memories: {
        ...listMemories,
        call: ({ category, limit, offset }, context) =>
          ask({ do: 'list', category: category || undefined, limit, offset }, context),
      },
    },
    async start(context) {
      log = context.log
      changed = context.changed
    },
    stop: () => thread.close(),
    state: () =>
      damaged.size === 0
        ? { ok: true, text: 'ready' }
        : { ok: false, text: `damaged: the memories of ${[...damaged.keys()].join(', ')}` },
  })
}
