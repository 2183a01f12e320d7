import { existsSync } from 'node:fs'
import { findProgram } from '../../../host/src/base/programs.ts'

/** What this machine has of what the faults need. */
export const isRoot: boolean = process.getuid?.() === 0
export const hasProgram = (name: string): boolean => findProgram(name) !== undefined

const libraries = ['x86_64-linux-gnu', 'aarch64-linux-gnu'].map(
  machine => `/usr/lib/${machine}/faketime/libfaketimeMT.so.1`,
)
/** makes a process believe in another time */
export const fakeTime = (): string | undefined => libraries.find(path => existsSync(path))
