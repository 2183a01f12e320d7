import type { Action, Taint, Verdict } from '../../base/taint.ts'

export interface Question {
  action: Action
  taint: Taint
  /** why somebody has to look at it */
  why: string
}

/**
 * Looks at what is doubtful before a person has to. Whatever goes wrong is `unsure`, never `allow`; both
 * reject with the signal's reason, and for nothing else.
 */
export interface Inspector {
  inspect(question: Question, signal: AbortSignal): Promise<Verdict>
  /** text of strangers on its way in: `deny` where it speaks to the agent as if it were its master */
  inspectText(text: string, about: string, signal: AbortSignal): Promise<Verdict>
}
