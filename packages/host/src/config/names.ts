/** Names without the schema that checks them: the command line offers them in `--help`, which must not load zod. */
export { driverNames } from '@hatchway/protocol/names'
/** The safest first. */
export const sandboxOrder = ['docker', 'podman', 'bubblewrap', 'process'] as const
export const sandboxNames = ['auto', ...sandboxOrder] as const
