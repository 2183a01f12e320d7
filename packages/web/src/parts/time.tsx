import { useSyncExternalStore } from 'react'
import { absolute, relative } from './figures.ts'

/** One clock for every time on the page. */
const stepMs = 5000
const watchers = new Set<() => void>()
let now = Date.now()
let timer: ReturnType<typeof setInterval> | undefined

const subscribe = (heard: () => void) => {
  watchers.add(heard)
  if (timer === undefined) {
    // Nobody may have looked at it for a while.
    now = Date.now()
    timer = setInterval(() => {
      now = Date.now()
      for (const each of watchers) each()
    }, stepMs)
  }
  return () => {
    watchers.delete(heard)
    if (watchers.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

export function Time({ at }: { at: string | null }) {
  const seen = useSyncExternalStore(subscribe, () => now)
  if (at === null) return <span className="faint">never</span>
  const ms = Date.parse(at)
  return (
    <time dateTime={at} title={absolute(ms)}>
      {/* What just came in is not in the future. */}
      {relative(ms, Math.abs(ms - seen) < stepMs ? ms : seen)}
    </time>
  )
}
