import type { ShellClass } from '../types.ts'

/** Commands by the class they have to be given. */
export type Judged = Partial<Record<Exclude<ShellClass, 'harmless'>, readonly string[]>>
