import type { Command } from '@hatchway/host/api-types'
import { useCallback, useEffect, useRef, useState } from 'react'
import { ask, messageOf, pathOf } from '../../host/ask.ts'
import { feed } from '../../live/streams.ts'
import { fits, keptAtMost, merged, type TrafficFilter } from './list.ts'

/** Every command that fits, as it comes; older ones when they are wanted. */
const pageSize = 500
/** one that comes alone is drawn at once; a thousand a second are drawn a few times a second */
const gatherMs = 100

const oks: Readonly<Record<string, string>> = { done: '1', refused: '0', open: 'open' }

export function useTraffic({ group, type, decision }: TrafficFilter) {
  const [commands, setCommands] = useState<readonly Command[]>([])
  const [isLoaded, setLoaded] = useState(false)
  const [error, setError] = useState<string>()
  const [hasOlder, setOlder] = useState(false)
  const turn = useRef(0)
  const isAsking = useRef(false)

  const read = useCallback(
    (before?: number) =>
      ask<Command[]>(
        pathOf('/api/host/commands', {
          group,
          type,
          ok: decision && oks[decision],
          before: before ?? Number.MAX_SAFE_INTEGER,
          limit: pageSize,
        }),
      ),
    [group, type, decision],
  )

  const newest = useRef<number | undefined>(undefined)
  newest.current = commands[0]?.seq

  const load = useCallback(async () => {
    const mine = ++turn.current
    const edge = newest.current
    try {
      const page = await read()
      if (mine !== turn.current) return
      const lowest = Math.min(...page.map(({ seq }) => seq))
      // Between what is here and what came now nothing may be missing: where something is, the older part goes.
      const isTorn = edge !== undefined && page.length === pageSize && lowest > edge
      setCommands(known => merged(isTorn ? known.filter(({ seq }) => seq > edge) : known, page))
      setOlder(page.length === pageSize)
      setError(undefined)
    } catch (error) {
      if (mine === turn.current) setError(messageOf(error))
    }
    if (mine === turn.current) setLoaded(true)
  }, [read])

  useEffect(() => {
    setCommands([])
    newest.current = undefined
    setLoaded(false)
    load()
    return () => {
      turn.current++
    }
  }, [load])

  useEffect(() => {
    let gathered: Command[] = []
    let timer: ReturnType<typeof setTimeout> | undefined
    let drawnAt = Number.NEGATIVE_INFINITY
    const flush = () => {
      timer = undefined
      drawnAt = performance.now()
      const fresh = gathered
      gathered = []
      setCommands(known => merged(known, fresh))
    }
    const stop = feed.on(event => {
      if (event.kind === 'hello' && !event.complete) load()
      if (event.kind !== 'command' || !fits(event.command, { group, type, decision })) return
      gathered.push(event.command)
      timer ??= setTimeout(flush, Math.max(0, drawnAt + gatherMs - performance.now()))
    })
    return () => {
      stop()
      clearTimeout(timer)
    }
  }, [group, type, decision, load])

  const oldest = commands.at(-1)?.seq
  const loadOlder = useCallback(async () => {
    if (isAsking.current || oldest === undefined) return
    isAsking.current = true
    const mine = turn.current
    try {
      const page = await read(oldest)
      if (mine !== turn.current) return
      setCommands(known => merged(known, page))
      setOlder(page.length === pageSize)
    } catch (error) {
      setError(messageOf(error))
    } finally {
      isAsking.current = false
    }
  }, [read, oldest])

  return { commands, isLoaded, error, hasOlder: hasOlder && commands.length < keptAtMost, loadOlder }
}
