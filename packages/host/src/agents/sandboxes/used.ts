import type { Store } from '../../store/types.ts'
import type { SandboxName } from '../types.ts'
import { sandboxOrder } from './choose.ts'

/**
 * Which engines this installation has ever run something in: only there can something of it be left over. Asking an
 * engine takes a second of a processor, and most machines have several that are never used.
 */
export interface UsedEngines {
  all(): readonly SandboxName[]
  /** durable before anything is started in it */
  add(name: SandboxName): void
}

const key = 'engines'

export function openUsedEngines(store: Pick<Store, 'meta' | 'setMeta'>): UsedEngines {
  const kept = store.meta(key)
  // One that was there before anybody kept account of it may have used any.
  const isOlder = kept === undefined && store.meta('installation') !== undefined
  const used = new Set(sandboxOrder.filter(name => isOlder || kept?.split(' ').includes(name)))
  return {
    all: () => [...used],
    add(name) {
      if (used.has(name) && !isOlder) return
      used.add(name)
      store.setMeta(key, [...used].join(' '))
    },
  }
}
