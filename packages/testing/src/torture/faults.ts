import type { FaultStep } from '../../../host/src/base/fault.ts'

/** Steps of the pipeline at which a daemon can be ended. */
export const pipelineSteps: readonly FaultStep[] = [
  'listed',
  'claimed',
  'gathered',
  'decoded',
  'deciding',
  'committed',
  'answering',
  'answered',
  'quarantining',
  'quarantined',
  'discarding',
  'snapshots',
]

/** The calls the pipeline stands on, and ways in which they fail in real life. */
export const brokenCalls = [
  'rename:error=EIO',
  'rename:error=ENOSPC',
  'rename:error=EINTR',
  'unlink:error=EIO',
  'openat:error=EINTR',
  'pwrite64:error=ENOSPC',
  'pwrite64:error=EIO',
  'fdatasync:error=EIO',
  'write:error=ENOSPC',
] as const
