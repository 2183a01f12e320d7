/** Names without the schemas that check them: the command line and the console offer them, and must not load zod for that. */
export const dialectNames = ['hatchway', 'nanoclaw', 'novabot', 'mdclaw', 'pynchy'] as const
export const driverNames = ['concierge', 'assistant', 'claude', 'acp', 'command'] as const
export const contextModes = ['group', 'isolated'] as const
