/**
 * The latest commands as they were received, for whoever opens one in the console; in memory only, and never logged.
 * The text is the string that was parsed: keeping it copies nothing.
 */
export interface Contents {
  keep(seq: number, text: string): void
  find(seq: number): string | undefined
}

const kept = 2048
/** UTF-16 units, two bytes each at the most: 8 MiB */
const keptUnits = 4 * 1024 * 1024
const longest = 1024 * 1024

export function createContents(): Contents {
  const seqs = new Float64Array(kept)
  const texts = new Array<string | undefined>(kept).fill(undefined)
  /** the place of the oldest, and how many there are */
  let oldest = 0
  let count = 0
  let units = 0

  const forgetOldest = () => {
    units -= texts[oldest]?.length ?? 0
    texts[oldest] = undefined
    oldest = (oldest + 1) % kept
    count--
  }

  return {
    keep(seq, text) {
      if (text.length > longest) return
      while (count > 0 && (count === kept || units + text.length > keptUnits)) forgetOldest()
      const place = (oldest + count) % kept
      seqs[place] = seq
      texts[place] = text
      units += text.length
      count++
    },
    find(seq) {
      for (let back = count - 1; back >= 0; back--) {
        const place = (oldest + back) % kept
        if (seqs[place] === seq) return texts[place]
      }
      return undefined
    },
  }
}
