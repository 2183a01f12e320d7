/** An instant as a clock on the wall shows it, with its zone: `Fri 2030-02-01 09:30:00 Europe/Berlin`. */
export function localTime(instant: string, timezone: string): string {
  const parts = new Intl.DateTimeFormat('en-GB', {
    timeZone: timezone,
    weekday: 'short',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
  }).formatToParts(new Date(instant))
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.find(found => found.type === type)?.value ?? ''
  const date = `${part('year')}-${part('month')}-${part('day')}`
  return `${part('weekday')} ${date} ${part('hour')}:${part('minute')}:${part('second')} ${timezone}`
}

/** The zone this process runs in. The runtime calls one it does not know by a name that nobody else knows. */
export function ownTimezone(): string {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions()
  return timeZone === 'Etc/Unknown' ? 'UTC' : timeZone
}

/** Whether the runtime knows it. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}
