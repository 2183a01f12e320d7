/**
 * How long to wait between polls: short after a file was found, then longer and longer. Scanning ten thousand
 * directories every few milliseconds would use a whole core, while a delay of one second costs an idle agent little.
 */
export interface PollInterval {
  readonly ms: number
  reset(): void
  increase(): void
}

export function createPollInterval(minMs: number, maxMs: number): PollInterval {
  let ms = minMs
  return {
    get ms() {
      return ms
    },
    reset() {
      ms = minMs
    },
    increase() {
      ms = Math.min(maxMs, ms * 1.5)
    },
  }
}
