import type { ApprovalAnswer } from '@hatchway/host/api'
import { visible } from '../text.ts'

/** What has become of something that a person was asked to allow; undefined while nobody has decided. */
export function endingOf({ status, decided_by, words, always }: ApprovalAnswer): string | undefined {
  const by = visible(decided_by ?? 'somebody')
  switch (status) {
    case 'open':
      return undefined
    case 'allowed':
      return always ? `Allowed by ${by}, from now on without asking.` : `Allowed by ${by}.`
    case 'denied':
      return words === null ? `Denied by ${by}.` : `Denied by ${by}: ${visible(words)}`
    case 'expired':
      return 'Nobody decided in time, so it was not done.'
    case 'withdrawn':
      return 'It is no longer needed.'
  }
}
