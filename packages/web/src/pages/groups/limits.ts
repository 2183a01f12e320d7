import { count, longSpanOf, sizeOf, spanOf } from '../../parts/figures.ts'

/** `pendingFiles: 10000` as «Pending files: 10 000»; bytes and milliseconds in the unit people know. */
export function limitInWords(name: string, value: number | string | null): { label: string; text: string } {
  const [, stem = name, unit] = /^(.+?)_?(Bytes|bytes|Ms|ms|_s|Seconds|seconds)?$/.exec(name) ?? []
  const spaced = stem
    .replaceAll('_', ' ')
    .replaceAll(/([a-z0-9])([A-Z])/g, (_, a: string, b: string) => `${a} ${b.toLowerCase()}`)
  const label = `${spaced.charAt(0).toUpperCase()}${spaced.slice(1)}`
  if (value === null) return { label, text: 'none' }
  if (typeof value === 'string') return { label, text: value }
  switch (unit?.toLowerCase()) {
    case 'bytes':
      return { label: stem === '' ? 'Bytes' : label, text: sizeOf(value) }
    case 'ms':
      return { label, text: value < 60_000 ? spanOf(value * 1000) : longSpanOf(value / 1000) }
    case '_s':
    case 'seconds':
      return { label, text: longSpanOf(value) }
    default:
      return { label, text: count(value) }
  }
}
