/**
 * What a text says once it is taken out of its wrapping: base64, hexadecimal digits, percent signs. One layer, and only
 * what can be read in it. Whoever hides something better than that (ciphers, compression, two layers) is not found out
 * here; that is what taint is for.
 */
export function* viewsOf(text: string): Generator<string> {
  for (const [run] of text.matchAll(base64Runs)) yield* readableIn(Buffer.from(run, 'base64'))
  for (const [run] of text.matchAll(hexRuns)) yield* readableIn(Buffer.from(run, 'hex'))
  if (percentRun.test(text)) {
    yield text.replaceAll(percentRuns, run => Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8'))
  }
}

/** Also in lines of some length, as mail has it. */
const base64Runs = /(?:[A-Za-z0-9+/_-]{40,}\r?\n)*[A-Za-z0-9+/_-]{20,}/g
const hexRuns = /(?:[0-9a-fA-F]{2}){16,}/g
const percentRun = /%[0-9a-fA-F]{2}/
const percentRuns = /(?:%[0-9a-fA-F]{2})+/g

/** Bytes that never were a text hardly ever have that much of one in them. */
const readableRuns = /[^\p{Cc}\p{Cn}\p{Co}\p{Cs}\ufffd]{12,}/gu

function* readableIn(bytes: Buffer): Generator<string> {
  for (const [run] of bytes.toString('utf8').matchAll(readableRuns)) yield run
}
