import type { Checkup } from '../api/checkup.ts'
import type { Layout } from '../base/layout.ts'
import type { Config } from '../config.ts'

/** One thing the doctor looked at. `bad` keeps something from working; `warning` is worth knowing. */
export interface Finding {
  what: string
  state: 'good' | 'warning' | 'bad'
  /** what is the case, and where something is wrong, what to do */
  says: string
  /** does what is safe about it, and tells what it did; left out: that is for a person */
  mend?: () => string | Promise<string>
}

/** What the doctor knows when it looks. */
export interface DoctorContext {
  config: Config
  layout: Layout
  /** who has the data directory; `silent` is somebody who does not answer */
  holder: 'daemon' | 'silent' | 'nobody'
  /** undefined: there is no database yet, or nobody who would tell */
  checkup: Checkup | undefined
  environment: NodeJS.ProcessEnv
  now(): number
}

export const good = (what: string, says: string): Finding => ({ what, state: 'good', says })

const finding =
  (state: 'warning' | 'bad') =>
  (what: string, says: string, mend?: Finding['mend']): Finding => ({
    what,
    state,
    says,
    ...(mend ? { mend } : {}),
  })
export const warning = finding('warning')
export const bad = finding('bad')

/** A few of many, for a sentence. */
export const some = (names: readonly string[]): string =>
  names.length <= 3 ? names.join(', ') : `${names.slice(0, 3).join(', ')} and ${names.length - 3} more`

export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
