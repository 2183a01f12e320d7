/** Apart from the rest of the protocol: whoever only speaks it has no use for this. */
export { judgeShell, type ShellVerdict } from './judge.ts'
