import type { Topic } from '@hatchway/host/api-types'
import { useCallback, useEffect, useRef, useState } from 'react'
import { ask, messageOf } from '../host/ask.ts'
import { feed } from './streams.ts'

const readEveryMs = 1000

export interface Answer<T> {
  value: T | undefined
  error: string | undefined
  reload: () => void
}

/** A page's content that stays true: read again when the host says that it changed, or that something was missed. */
export function useAnswer<T>(path: string | null, topics: readonly (Topic | 'runs')[] = []): Answer<T> {
  const [held, setHeld] = useState<{ path: string | null; value: T | undefined; error?: string }>({
    path,
    value: undefined,
  })
  const turn = useRef(0)
  const reload = useCallback(async () => {
    if (path === null) return
    const mine = ++turn.current
    try {
      const value = await ask<T>(path)
      if (mine === turn.current) setHeld({ path, value })
    } catch (error) {
      if (mine === turn.current)
        setHeld(({ path: before, value }) => ({
          path,
          value: before === path ? value : undefined,
          error: messageOf(error),
        }))
    }
  }, [path])

  useEffect(() => {
    reload()
    return () => {
      turn.current++
    }
  }, [reload])

  const about = topics.join(' ')
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let last = 0
    const stop = feed.on(event => {
      const isMissed = event.kind === 'hello' && !event.complete
      const isChanged = event.kind === 'changed' && about.split(' ').includes(event.what)
      const isRun = event.kind === 'run' && about.split(' ').includes('runs')
      if (!isMissed && !isChanged && !isRun) return
      // However much happens, a list is read once a second.
      timer ??= setTimeout(
        () => {
          timer = undefined
          last = performance.now()
          reload()
        },
        Math.max(0, last + readEveryMs - performance.now()),
      )
    })
    return () => {
      stop()
      clearTimeout(timer)
    }
  }, [about, reload])

  // Another filter of the same list may stand on what was there until its own answer comes; another thing may not.
  const isSame = held.path?.split('?')[0] === path?.split('?')[0]
  return { value: isSame ? held.value : undefined, error: isSame ? held.error : undefined, reload }
}
