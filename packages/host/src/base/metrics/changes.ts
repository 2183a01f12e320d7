/** Kinds of things whose lists somebody may look at. */
export const changeKinds = [
  'tasks',
  'groups',
  'approvals',
  'questions',
  'errors',
  'messages',
  'deploys',
  'jobs',
  'status',
] as const
export type ChangeKind = (typeof changeKinds)[number]

/** That something is other than before, for whoever asks now and then. Saying so sets a bit. */
export interface Changes {
  note(kind: ChangeKind): void
  /** what has changed since this was asked last */
  take(): ChangeKind[]
}

export function createChanges(): Changes {
  const noted = new Set<ChangeKind>()
  return {
    note: kind => void noted.add(kind),
    take() {
      const taken = [...noted]
      noted.clear()
      return taken
    },
  }
}
