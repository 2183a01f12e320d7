import type { Task } from '@hatchway/protocol'

import { longSpanOf } from '../../parts/figures.ts'

type Scheduled = Pick<Task, 'schedule_type' | 'schedule_value' | 'timezone'>

/** When a task runs, in words as far as they are clear. */
export function scheduleInWords({ schedule_type, schedule_value, timezone }: Scheduled): string {
  switch (schedule_type) {
    case 'interval':
      return `every ${longSpanOf(Number(schedule_value) / 1000)}`
    case 'once':
      return `once, ${instantInWords(schedule_value, timezone)}`
    case 'cron':
      return `${cronInWords(schedule_value) ?? schedule_value} (${timezone})`
  }
}

/** A local time is one of the task's zone; others say how far they are from UTC. */
function instantInWords(value: string, timezone: string): string {
  const [, date, time, offset] = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::\d\d(?:\.\d+)?)?(.*)$/.exec(value) ?? []
  if (date === undefined || time === undefined) return value
  const zone = offset === '' ? timezone : offset === 'Z' ? 'UTC' : `UTC${offset}`
  return `${date} at ${time} (${zone})`
}

const weekdays = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']

function cronInWords(expression: string): string | undefined {
  const [minute = '', hour = '', day, month, weekday = '', ...rest] = expression.trim().split(/\s+/)
  if (day !== '*' || month !== '*' || rest.length > 0) return undefined
  if (/^\*\/\d+$/.test(minute) && hour === '*' && weekday === '*') return `every ${minute.slice(2)} min`
  if (!/^\d{1,2}$/.test(minute)) return undefined
  if (hour === '*' && weekday === '*') return `every hour at :${minute.padStart(2, '0')}`
  if (!/^\d{1,2}$/.test(hour)) return undefined
  const at = `at ${hour.padStart(2, '0')}:${minute.padStart(2, '0')}`
  if (weekday === '*') return `every day ${at}`
  if (weekday === '1-5') return `every weekday ${at}`
  const named = /^[0-7]$/.test(weekday) ? weekdays[Number(weekday)] : undefined
  return named && `every ${named} ${at}`
}
