/** Names without the schema that checks them: the command line offers them in `--help`, which must not load zod. */
export const sandboxNames = ['auto', 'docker', 'podman', 'bubblewrap', 'process'] as const
export const driverNames = ['concierge', 'claude', 'command'] as const

/** Where the configuration is looked for, in this order. Beside a package.json without `"type": "module"`, only .mts and .mjs may import. */
export const configFiles = [
  'hatchway.config.ts',
  'hatchway.config.mts',
  'hatchway.config.mjs',
  'hatchway.config.js',
] as const
