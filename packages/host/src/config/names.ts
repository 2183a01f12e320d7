/** Names without the schema that checks them: the command line offers them in `--help`, which must not load zod. */
export const sandboxNames = ['auto', 'docker', 'podman', 'bubblewrap', 'process'] as const
export const driverNames = ['concierge', 'claude', 'command'] as const
