import type { Config } from '../config.ts'
import { examine as examineWith, type ReportedFinding } from '../doctor/examine.ts'
import { configuredPlugins } from './plugins.ts'

/** What `hatchway doctor` tells, the checks of the configuration's plugins included. */
export const examine = (config: Config, options: { fix?: boolean } = {}): Promise<ReportedFinding[]> =>
  examineWith(config, configuredPlugins(config, process.env), options)
