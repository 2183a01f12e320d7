/** Names without the schemas that check them: the command line offers them in `--help`, which must not load zod. */
export const dialectNames = ['hatchway', 'nanoclaw', 'novabot', 'mdclaw', 'pynchy'] as const
export const contextModes = ['group', 'isolated'] as const
