/**
 * How many files of one inbox a turn takes, since everybody else waits for them: as many as are over in a few
 * milliseconds, where each file takes its time (a slow disk, answers to place, entries in errors/), and the most there
 * may be where it is the commit that takes it, which is one for all of them. Which of the two it is, turns of different
 * sizes tell: what a turn takes longer for each file more is the file's.
 */
export interface Share {
  size(): number
  took(files: number, ms: number): void
}

const most = 32
const fewest = 4
const turnMs = 10
/** of the newest turn; the ones before it fade */
const weight = 0.1
/** Turns of nearly one size tell nothing. */
const leastVariance = 2

export function createShare(): Share {
  let meanFiles = 1
  let meanMs = 0
  let variance = 0
  let covariance = 0
  let fileMs = 0
  return {
    size: () => Math.min(most, Math.max(fewest, Math.round(turnMs / Math.max(fileMs, turnMs / most)))),
    took(files, ms) {
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
