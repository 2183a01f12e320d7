/** Numbers, sizes, times and spans as people read them. */
const grouped = new Intl.NumberFormat('en', { useGrouping: 'min2', maximumFractionDigits: 1 })

/** 12 345, with a narrow space that no line breaks at. */
export const count = (value: number): string => grouped.format(value).replaceAll(',', '\u202f')

/** `1 approval`, `2 approvals` */
export const counted = (value: number, name: string): string =>
  `${count(value)} ${name}${value === 1 ? '' : 's'}`

const sizes = ['kB', 'MB', 'GB', 'TB']

export function sizeOf(bytes: number): string {
  if (bytes < 1000) return `${bytes} bytes`
  let size = bytes
  let unit = -1
  while (size >= 1000 && unit < sizes.length - 1) {
    size /= 1000
    unit++
  }
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${sizes[unit]}`
}

export function spanOf(microseconds: number): string {
  if (microseconds < 1000) return `${Math.round(microseconds)} µs`
  const ms = microseconds / 1000
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
  const s = ms / 1000
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`
  return longSpanOf(s)
}

/** 3 days 4 h; 12 min; 40 s */
export function longSpanOf(seconds: number): string {
  const minutes = Math.floor(seconds / 60)
  if (minutes < 1) return `${Math.floor(seconds)} s`
  const hours = Math.floor(minutes / 60)
  if (hours < 1) return `${minutes} min`
  const days = Math.floor(hours / 24)
  const rest = hours % 24
  if (days < 1) return `${hours} h${minutes % 60 > 0 ? ` ${minutes % 60} min` : ''}`
  return `${days} ${days === 1 ? 'day' : 'days'}${rest > 0 ? ` ${rest} h` : ''}`
}

const day = 86_400_000
const shortDate = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' })
const longDate = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', year: 'numeric' })

/** `12 s ago`, `in 3 min`; what is far away by its date. */
export function relative(at: number, now: number): string {
  const distance = Math.abs(at - now)
  if (distance < 5000) return 'now'
  if (distance >= 30 * day) {
    const isThisYear = new Date(at).getFullYear() === new Date(now).getFullYear()
    return (isThisYear ? shortDate : longDate).format(at)
  }
  const seconds = Math.floor(distance / 1000)
  const span =
    seconds < 60
      ? `${seconds} s`
      : seconds < 3600
        ? `${Math.floor(seconds / 60)} min`
        : seconds < 86_400
          ? `${Math.floor(seconds / 3600)} h`
          : distance < 2 * day
            ? '1 day'
            : `${Math.floor(distance / day)} days`
  return at < now ? `${span} ago` : `in ${span}`
}

const whole = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'medium', hourCycle: 'h23' })
export const absolute = (at: number): string => whole.format(at)

/** One way to tell the time of day, whatever the language: beside each other, two would be read wrong. */
const minutes = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
/** 09:31 */
export const timeOf = (at: number): string => minutes.format(at)
const seconds = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium', hourCycle: 'h23' })
/** 09:31:07 */
export const secondOf = (at: number): string => seconds.format(at)

const exact = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
})
/** 09:31:07.042 */
export const clockOf = (at: number): string => exact.format(at)
