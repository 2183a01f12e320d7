import type { Layout } from '../base/layout.ts'

/** One thing that `hatchway doctor` looked at. `bad` keeps something from working; `warning` is worth knowing. */
export interface Finding {
  what: string
  state: 'good' | 'warning' | 'bad'
  /** what is the case, and where something is wrong, what to do */
  says: string
  /** does what is safe about it, and tells what it did; left out: that is for a person */
  mend?: () => string | Promise<string>
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

export interface Check<S = unknown> {
  name: string
  run(context: CheckContext<S>): Promise<readonly Finding[]> | readonly Finding[]
}

export interface CheckContext<S = unknown> {
  settings: S
  layout: Layout
  environment: Readonly<NodeJS.ProcessEnv>
}

/** Variables that are named and not set: the daemon may have them from its unit file, which the doctor cannot see. */
export const missingVariables = (
  environment: Readonly<NodeJS.ProcessEnv>,
  wanted: readonly { variable: string; neededBy: string }[],
): Finding[] => {
  // The last one that needs a variable is named, once.
  const byVariable = new Map(wanted.map(({ variable, neededBy }) => [variable, neededBy]))
  return [...byVariable]
    .filter(([variable]) => (environment[variable] ?? '') === '')
    .map(([variable, neededBy]) => ({
      what: 'configuration',
      state: 'warning',
      says: `${variable} is not set here, and ${neededBy} needs it. If the daemon gets it from its service unit, all is well; otherwise set it.`,
    }))
}
