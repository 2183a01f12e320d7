import { reasonOf } from './directory.ts'
import type { ClaimedFile, Report } from './types.ts'

/**
 * Hands one batch at a time to the consumer.
 *
 *   free      → busy       a batch is handed over
 *   busy      → free       the consumer is done with it
 *             → waiting    the consumer failed: the batch is kept
 *   waiting   → busy       the pause, which doubles with each failure, is over: the same batch is handed over again
 */
export interface Delivery {
  /** false: no batch may be handed over now */
  isFree(): boolean
  /** the batch that the consumer failed on; it goes before all others */
  kept(): readonly ClaimedFile[] | undefined
  /** whether the consumer still has a batch, or has to get one again */
  hasFiles(): boolean
  /** `begun`: when its files began to be collected */
  handOver(batch: readonly ClaimedFile[], begun: number, consume: Consume): void
  /** resolves when the current batch is consumed */
  settled(): Promise<void>
}

export type Consume = (files: readonly ClaimedFile[]) => void | Promise<void>

const minRetryMs = 50
const maxRetryMs = 5000

export function createDelivery(options: {
  later(ms: number, work: () => void): void
  report(report: Report): void
  /** the batch is consumed; collecting and consuming it took this long */
  consumed(batch: readonly ClaimedFile[], tookMs: number): void
  failed(batch: readonly ClaimedFile[]): void
  /** something can be handed over again */
  freed(): void
  /** the pause after a failure is over */
  retry(): void
}): Delivery {
  const { later, report } = options
  let failedBatch: readonly ClaimedFile[] | undefined
  let retryMs = 0
  let isPausing = false
  let consuming: Promise<void> | undefined

  const failed = (batch: readonly ClaimedFile[], error: unknown) => {
    options.failed(batch)
    failedBatch = batch
    isPausing = true
    retryMs = Math.min(maxRetryMs, Math.max(minRetryMs, retryMs * 2))
    const reason = reasonOf(error)
    report({
      kind: 'consumer_failed',
      message: `A batch of ${batch.length} files failed and is kept. It is handed over again in ${retryMs} ms: ${reason}`,
    })
    later(retryMs, () => {
      isPausing = false
      options.retry()
    })
  }

  return {
    isFree: () => !consuming && !isPausing,
    kept: () => failedBatch,
    hasFiles: () => failedBatch !== undefined || consuming !== undefined,
    handOver(batch, begun, consume) {
      const succeeded = () => {
        failedBatch = undefined
        retryMs = 0
        options.consumed(batch, performance.now() - begun)
        options.freed()
      }
      try {
        const done = consume(batch)
        if (!done) return succeeded()
        consuming = done
          .then(succeeded, error => failed(batch, error))
          .finally(() => {
            consuming = undefined
            options.freed()
          })
      } catch (error) {
        failed(batch, error)
      }
    },
    settled: async () => consuming,
  }
}
