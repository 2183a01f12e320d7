import { sandboxOrder } from '../config/names.ts'
import type { Store } from '../store/types.ts'
import type { SandboxName } from './types.ts'

/**
 * Which engines this installation has ever run something in: only there can something of it be left over. Asking an
 * engine takes a second of a processor, and most machines have several that are never used.
 */
export interface UsedEngines {
  all(): readonly SandboxName[]
  /** durable before anything is started in it */
  add(name: SandboxName): void
  /** while it is found out which of them work: one that is killed meanwhile may leave a container in any */
  trying<T>(find: () => Promise<T>): Promise<T>
}

const key = 'engines'
const tryingKey = 'engines-trying'

export function openUsedEngines(store: Pick<Store, 'meta' | 'setMeta'>): UsedEngines {
  const kept = store.meta(key)
  // One that was there before anybody kept account of it may have used any.
  const isOlder = kept === undefined && store.meta('installation') !== undefined
  const wasTrying = store.meta(tryingKey) === 'yes'
  const used = new Set(sandboxOrder.filter(name => isOlder || kept?.split(' ').includes(name)))
  return {
    all: () => (wasTrying ? sandboxOrder : [...used]),
    add(name) {
      if (used.has(name) && !isOlder) return
      used.add(name)
      store.setMeta(key, [...used].join(' '))
    },
    async trying(find) {
      store.setMeta(tryingKey, 'yes')
      const found = await find()
      store.setMeta(tryingKey, 'no')
      return found
    },
  }
}
