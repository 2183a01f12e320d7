/** For the command `hatchway supervise`, which keeps nothing else of the host loaded. */
export { handoverFile } from './handover.ts'
export { type SuperviseOptions, supervise } from './supervise.ts'
