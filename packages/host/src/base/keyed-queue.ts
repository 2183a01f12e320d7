/**
 * The one queue for work that belongs to somebody: a group, a chat, a repository. The items of one key keep their
 * order, keys take turns, and so many of one key and of all run at the same time. An item is
 *
 *   waiting   added; `next` or `more` gives it out, `remove` withdraws it
 *   running   given out by `next`; counts against both limits until `done`
 *
 * Nothing here waits for anything: whoever needs a promise uses `createWorkQueue`.
 */
export interface KeyedQueue<Item> {
  add(key: string, item: Item): void
  /** back to the front of its key; it was given out and could not begin */
  putBack(key: string, item: Item): void
  /** does nothing for an item that does not wait */
  remove(key: string, item: Item): void
  /** the first item of the key whose turn it is */
  next(): { key: string; item: Item } | undefined
  /** further items of a key from its front, for as long as they fit: they share the place of the one `next` gave out */
  more(key: string, fits: (item: Item) => boolean): Item[]
  done(key: string): void
  /** how many items of a key wait */
  waiting(key: string): number
  /** withdraws everything that waits */
  clear(): Item[]
}

export interface QueueLimits {
  perKey?: number
  all?: number
}

interface Lane<Item> {
  waiting: Set<Item>
  running: number
}

export function createKeyedQueue<Item>({
  perKey = 1,
  all = Number.POSITIVE_INFINITY,
}: QueueLimits = {}): KeyedQueue<Item> {
  const lanes = new Map<string, Lane<Item>>()
  /** keys that have something waiting and may begin it, in the order of their turns */
  const ready = new Set<string>()
  let running = 0

  const laneOf = (key: string): Lane<Item> => {
    let lane = lanes.get(key)
    if (!lane) {
      lane = { waiting: new Set(), running: 0 }
      lanes.set(key, lane)
    }
    return lane
  }
  /** Keeps the turn of a key that has one, and gives one to a key that needs one. */
  const settle = (key: string, lane: Lane<Item>) => {
    if (lane.waiting.size === 0 || lane.running >= perKey) ready.delete(key)
    else ready.add(key)
    if (lane.waiting.size === 0 && lane.running === 0) lanes.delete(key)
  }

  return {
    add(key, item) {
      const lane = laneOf(key)
      lane.waiting.add(item)
      settle(key, lane)
    },
    putBack(key, item) {
      const lane = laneOf(key)
      lane.waiting = new Set([item, ...lane.waiting])
      settle(key, lane)
    },
    remove(key, item) {
      const lane = lanes.get(key)
      if (lane?.waiting.delete(item)) settle(key, lane)
    },
    next() {
      if (running >= all) return undefined
      for (const key of ready) {
        const lane = laneOf(key)
        for (const item of lane.waiting) {
          lane.waiting.delete(item)
          lane.running++
          running++
          // The others come first, before this key has its turn again.
          ready.delete(key)
          settle(key, lane)
          return { key, item }
        }
      }
      return undefined
    },
    more(key, fits) {
      const lane = laneOf(key)
      const taken: Item[] = []
      for (const item of lane.waiting) {
        if (!fits(item)) break
        lane.waiting.delete(item)
        taken.push(item)
      }
      settle(key, lane)
      return taken
    },
    done(key) {
      const lane = laneOf(key)
      lane.running--
      running--
      settle(key, lane)
    },
    waiting: key => lanes.get(key)?.waiting.size ?? 0,
    clear() {
      const left = [...lanes.values()].flatMap(({ waiting }) => [...waiting])
      for (const [key, lane] of lanes) {
        lane.waiting.clear()
        settle(key, lane)
      }
      return left
    },
  }
}

/** The same queue for work that somebody waits for. */
export interface WorkQueue {
  /**
   * Begins the work when its turn comes, never before `run` has returned. Rejects with the signal's reason if it is
   * aborted before its turn; stopping work that has begun is the work's own affair.
   */
  run<T>(key: string, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T>
  waiting(key: string): number
  /** begins nothing more and rejects what waits; resolves once nothing runs */
  stop(reason: Error): Promise<void>
}

interface Waiting {
  begin(): Promise<void>
  cancel(reason: Error): void
}

export function createWorkQueue(limits?: QueueLimits): WorkQueue {
  const queue = createKeyedQueue<Waiting>(limits)
  const running = new Set<Promise<void>>()
  let stopped: Error | undefined

  const beginMore = () => {
    for (let turn = queue.next(); turn; turn = queue.next()) {
      const { key, item } = turn
      const over = item.begin().finally(() => {
        running.delete(over)
        queue.done(key)
        beginMore()
      })
      running.add(over)
    }
  }

  return {
    run(key, signal, work) {
      return new Promise((resolve, reject) => {
        if (stopped) return reject(stopped)
        if (signal?.aborted) return reject(signal.reason)
        const withdraw = () => {
          queue.remove(key, waiting)
          reject(signal?.reason)
        }
        const waiting: Waiting = {
          async begin() {
            signal?.removeEventListener('abort', withdraw)
            try {
              resolve(await Promise.resolve().then(work))
            } catch (error) {
              reject(error)
            }
          },
          cancel(reason) {
            signal?.removeEventListener('abort', withdraw)
            reject(reason)
          },
        }
        signal?.addEventListener('abort', withdraw, { once: true })
        queue.add(key, waiting)
        beginMore()
      })
    },
    waiting: key => queue.waiting(key),
    async stop(reason) {
      stopped = reason
      for (const { cancel } of queue.clear()) cancel(reason)
      await Promise.all(running)
    },
  }
}
