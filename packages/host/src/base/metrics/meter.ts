import { type ErrorCode, errorCodes } from '@hatchway/protocol'
import { type Contents, createContents } from './contents.ts'
import { createHistogram, createLatest, type Histogram, type Latest } from './histogram.ts'
import { createTraffic, type Traffic } from './traffic.ts'

/**
 * What intake tells of its work, 25,000 times a second: numbers are added to numbers, and nothing is allocated. All
 * that is made of them is made when somebody asks.
 */
export interface Meter {
  /** a batch is durable */
  batch(files: number, refused: number, tookUs: number, at: number): void
  /** one command of it; `waitedMs` is by its writer's clock and may be anything */
  command(
    command: { seq: number; group: string; receivedAt: number },
    text: string,
    code: ErrorCode | undefined,
    waitedMs: number,
  ): void
  /** the answer to a command that was accepted before is durable */
  answered(seq: number, at: number): void
  answeredAt(seq: number): number | undefined
  /** when a group last had a command handled, since the start */
  activeAt(group: string): number | undefined

  handled(): number
  refused(): number
  /** of every code, so that one that begins to count was 0 before */
  refusedBy(): { code: ErrorCode; count: number }[]
  readonly took: Histogram
  readonly waited: Histogram
  readonly batches: Histogram
  readonly latestTook: Latest
  readonly latestWaited: Latest
  readonly traffic: Traffic
  readonly contents: Contents
}

const tookBounds = [
  100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000,
]
const waitedBounds = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 60_000, 600_000]
const batchBounds = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000]
const percentilesOf = 4096
const answersKept = 2048
/** a file's time is its writer's to choose, and must not spoil the sum */
const longestWait = 86_400_000

const codes = Object.keys(errorCodes) as ErrorCode[]
const placeOf = new Map(codes.map((code, place) => [code, place]))

export function createMeter(startedAt: number): Meter {
  const refusals = new Float64Array(codes.length)
  const took = createHistogram(tookBounds)
  const waited = createHistogram(waitedBounds)
  const batches = createHistogram(batchBounds)
  const latestTook = createLatest(percentilesOf)
  const latestWaited = createLatest(percentilesOf)
  const traffic = createTraffic(startedAt)
  const contents = createContents()
  const activity = createActivity()
  const answeredSeqs = new Float64Array(answersKept)
  const answeredTimes = new Float64Array(answersKept)
  let answers = 0
  let handled = 0
  let refused = 0

  return {
    batch(files, refusedFiles, tookUs, at) {
      handled += files
      refused += refusedFiles
      batches.add(files)
      took.add(tookUs, files)
      latestTook.add(tookUs)
      traffic.add(at, files, refusedFiles)
    },
    command({ seq, group, receivedAt }, text, code, waitedMs) {
      activity.note(group, receivedAt)
      const wait = waitedMs > 0 ? Math.min(waitedMs, longestWait) : 0
      waited.add(wait)
      latestWaited.add(wait)
      // What is refused lies in errors/.
      if (code === undefined) return contents.keep(seq, text)
      const place = placeOf.get(code) ?? 0
      refusals[place] = (refusals[place] ?? 0) + 1
    },
    answered(seq, at) {
      answeredSeqs[answers % answersKept] = seq
      answeredTimes[answers % answersKept] = at
      answers++
    },
    activeAt: activity.at,
    answeredAt(seq) {
      const place = answeredSeqs.indexOf(seq)
      return place === -1 ? undefined : answeredTimes[place]
    },
    handled: () => handled,
    refused: () => refused,
    refusedBy: () => codes.map((code, place) => ({ code, count: refusals[place] ?? 0 })),
    took,
    waited,
    batches,
    latestTook,
    latestWaited,
    traffic,
    contents,
  }
}

/** Times lie in an array, as a number in a map is an object of its own. */
function createActivity() {
  const places = new Map<string, number>()
  let times = new Float64Array(64)
  return {
    note(group: string, at: number): void {
      let place = places.get(group)
      if (place === undefined) {
        place = places.size
        places.set(group, place)
        if (place >= times.length) {
          const larger = new Float64Array(times.length * 2)
          larger.set(times)
          times = larger
        }
      }
      times[place] = at
    },
    at(group: string): number | undefined {
      const place = places.get(group)
      return place === undefined ? undefined : times[place]
    },
  }
}
