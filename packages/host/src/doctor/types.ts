import type { Checkup } from '../api/answers.ts'
import type { Layout } from '../base/layout.ts'
import type { Config } from '../config.ts'
import type { ConfiguredPlugin } from '../plugin-api/open.ts'

export { bad, type Finding, good, some, warning } from '../plugin-api/check.ts'

/** What the doctor knows when it looks. */
export interface DoctorContext {
  config: Config
  /** whose checks are run, too */
  plugins: readonly ConfiguredPlugin[]
  layout: Layout
  /** who has the data directory; `silent` is somebody who does not answer */
  lockOwner: 'daemon' | 'silent' | 'nobody'
  /** undefined: there is no database yet, or nobody who would tell */
  checkup: Checkup | undefined
  environment: NodeJS.ProcessEnv
  now(): number
}
