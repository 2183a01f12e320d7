/** What was said lately, by us and by others: WhatsApp wants the words of a message that is quoted to be sent along. */
export interface Recent {
  keep(reference: string, words: string): void
  of(reference: string): string | undefined
}

const most = 1000

export function createRecent(): Recent {
  const kept = new Map<string, string>()
  return {
    keep(reference, words) {
      kept.set(reference, words)
      const [oldest] = kept.keys()
      if (kept.size > most && oldest !== undefined) kept.delete(oldest)
    },
    of: reference => kept.get(reference),
  }
}
