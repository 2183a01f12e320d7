/** Files of messages that could not be had. What may be over soon is tried again, but holds up nobody for long. */
export interface Failures {
  /** whether this person's file has failed so often in a row that it is given up */
  isLast(person: { jid: string; sender: string }): boolean
}

const mostAttempts = 3
const mostPeople = 1000

export function createFailures(): Failures {
  const counts = new Map<string, number>()
  return {
    isLast({ jid, sender }) {
      const person = JSON.stringify([jid, sender])
      const count = (counts.get(person) ?? 0) + 1
      if (counts.size >= mostPeople) counts.clear()
      if (count < mostAttempts) counts.set(person, count)
      else counts.delete(person)
      return count >= mostAttempts
    },
  }
}
