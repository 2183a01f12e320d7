/**
 * How many files of one inbox a round takes, while all other inboxes wait.
 *
 * If each file takes long (a slow disk, replies, quarantine entries), the share is as many as fit into `roundMs`. If
 * most of the time goes into the commit, which is one per batch, the share is as large as allowed: smaller ones would
 * only mean more commits. Rounds of different sizes tell the two apart: a linear regression over recent rounds
 * estimates the time per file.
 */
export interface FairShare {
  size(): number
  record(files: number, ms: number): void
}

const most = 32
const fewest = 4
const roundMs = 10
/** of the latest round; older rounds fade out */
const weight = 0.1
/** Rounds of almost the same size say nothing about the time per file. */
const leastVariance = 2

export function createFairShare(): FairShare {
  let meanFiles = 1
  let meanMs = 0
  let variance = 0
  let covariance = 0
  let fileMs = 0
  return {
    size: () => Math.min(most, Math.max(fewest, Math.round(roundMs / Math.max(fileMs, roundMs / most)))),
    record(files, ms) {
      const moreFiles = files - meanFiles
      const moreMs = ms - meanMs
      meanFiles += weight * moreFiles
      meanMs += weight * moreMs
      variance = (1 - weight) * (variance + weight * moreFiles * moreFiles)
      covariance = (1 - weight) * (covariance + weight * moreFiles * moreMs)
      if (variance >= leastVariance) fileMs = Math.max(0, covariance / variance)
    },
  }
}
