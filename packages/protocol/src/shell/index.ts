/** Apart from the rest of the protocol: whoever only speaks it should not have to load a shell's grammar. */
export { judgeShell } from './judge.ts'
export type { ShellVerdict } from './types.ts'
