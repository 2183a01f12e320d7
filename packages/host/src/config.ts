import type { ConfigInput } from './config/schema.ts'

export {
  ConfigError,
  configFrom,
  explainConfig,
  explained,
  type LoadOptions,
  loadConfig,
  withChangeableModel,
} from './config/load.ts'
export {
  type Config,
  type ConfigInput,
  configSchema,
  settingsFor,
  settingsOf,
  zoneOf,
} from './config/schema.ts'
export { settings } from './config/settings.ts'
export type { Role, WebSettings } from './config/web.ts'

/** For `hatchway.config.ts`: nothing but the types, so that an editor knows every value and its meaning. */
export const defineConfig = (input: ConfigInput): ConfigInput => input
