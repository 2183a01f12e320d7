/** Whether a shell command of the agent's may run. */
export type ShellDecision = { allow: true } | { allow: false; reason: string }

/**
 * The one place that is asked before each shell command. What the sandbox keeps out is kept out without it, so for now
 * everything may run; a host that wants to decide is asked here.
 */
export const mayRun = async (_command: string): Promise<ShellDecision> => ({ allow: true })
