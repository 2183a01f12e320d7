import type { Replies } from '../outcomes/replies.ts'
import type { Store } from '../store/types.ts'

const perSlice = 20
const sliceMs = 2000

/**
 * Answers that no container has taken do not stay for ever: its session may have ended where somebody else starts
 * containers, or it may have given up. All groups are looked at in turn, a few at a time, in no hurry.
 */
export function sweepUnread(options: {
  store: Pick<Store, 'groups'>
  replies: Pick<Replies, 'clear'>
  unreadMs: number
  now(): number
}): { stop(): void } {
  const { store, replies, unreadMs, now } = options
  let rest: string[] = []
  const sweep = () => {
    for (const folder of rest.splice(-perSlice)) replies.clear(folder, now() - unreadMs)
    if (rest.length > 0) return again(sliceMs)
    rest = store.groups().map(({ folder }) => folder)
    again(Math.min(unreadMs, 600_000))
  }
  const again = (ms: number) => {
    timer = setTimeout(sweep, ms).unref()
  }
  let timer: NodeJS.Timeout | undefined
  again(Math.min(unreadMs, 60_000))
  return { stop: () => clearTimeout(timer) }
}
