/** Names without the schema that checks them: the command line offers them in `--help`, which must not load zod. */
export { driverNames } from '@hatchway/protocol/names'
export { providerNames } from './providers.ts'
/** The safest first. */
export const sandboxOrder = ['docker', 'podman', 'bubblewrap', 'process'] as const
export const sandboxNames = ['auto', ...sandboxOrder] as const

/** Where the configuration is looked for, in this order. Beside a package.json without `"type": "module"`, only .mts and .mjs may import. */
export const configFiles = [
  'hatchway.config.ts',
  'hatchway.config.mts',
  'hatchway.config.mjs',
  'hatchway.config.js',
] as const
