/**
 * What one part of the host has to tell others. It is made before all of them: a part publishes without knowing who
 * listens, and a part that is made later listens without being known. Handlers run at once, in the order in which they
 * were added; what nobody listens to is nobody's business.
 */
export interface Notices<N extends { kind: string }> {
  on<K extends N['kind']>(kind: K, handle: (notice: Extract<N, { kind: K }>) => void): void
  publish(notice: N): void
}

export function createNotices<N extends { kind: string }>(): Notices<N> {
  const handlers = new Map<string, ((notice: N) => void)[]>()
  return {
    on(kind, handle) {
      const isOfKind = (notice: N): notice is Extract<N, { kind: typeof kind }> => notice.kind === kind
      const all = handlers.get(kind) ?? []
      handlers.set(kind, all)
      all.push(notice => {
        if (isOfKind(notice)) handle(notice)
      })
    },
    publish(notice) {
      for (const handle of handlers.get(notice.kind) ?? []) handle(notice)
    },
  }
}
