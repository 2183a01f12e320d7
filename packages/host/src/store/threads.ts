/**
 * The thread of a chat that a group's agent is answering in: what it says in that chat goes there. A run that nobody in a
 * thread called has none. It is not kept: a restart begins runs anew, and with them this.
 */
export interface Threads {
  enter(folder: string, jid: string, thread: string | undefined): void
  leave(folder: string): void
  of(folder: string, jid: string): string | undefined
}

export function createThreads(): Threads {
  const threads = new Map<string, { jid: string; thread: string }>()
  return {
    enter(folder, jid, thread) {
      if (thread === undefined) threads.delete(folder)
      else threads.set(folder, { jid, thread })
    },
    leave: folder => void threads.delete(folder),
    of(folder, jid) {
      const current = threads.get(folder)
      return current?.jid === jid ? current.thread : undefined
    },
  }
}
