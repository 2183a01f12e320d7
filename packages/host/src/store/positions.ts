import type { Store } from './types.ts'

/** Numbers in the order in which commands are executed; what a command creates can be named by its number. */
export interface Positions {
  next(): number
}

export function createPositions(store: Store): Positions {
  let last = Math.max(store.lastSeq(), store.lastMessageId())
  return { next: () => ++last }
}
