import type { Upcoming } from '@hatchway/host/api-types'

/** The days of a month as they hang on a wall, in the viewer's own time zone, with the runs that are due on them. */
export interface DayOfCalendar {
  /** 2026-03-01 */
  key: string
  date: Date
  isOfMonth: boolean
  isToday: boolean
  due: readonly Due[]
}

/** A task's runs of one day. */
interface Due {
  task_id: string
  group: string
  prompt: string
  /** when it is due first */
  at: string
  times: number
  /** there are more of that day and of the days after, which nobody computed */
  goesOn: boolean
}

const two = (value: number) => String(value).padStart(2, '0')
export const dayKey = (date: Date): string =>
  `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
/** 2026-03 */
export const monthKey = (date: Date): string => dayKey(date).slice(0, 7)

export function monthOf(key: string | undefined, now: Date): Date {
  const [, year, month] = /^(\d{4})-(\d{2})$/.exec(key ?? '') ?? []
  if (year === undefined || month === undefined) return new Date(now.getFullYear(), now.getMonth(), 1)
  return new Date(Number(year), Number(month) - 1, 1)
}

export const monthsOn = (month: Date, months: number): Date =>
  new Date(month.getFullYear(), month.getMonth() + months, 1)

const dueOf = (runs: readonly Upcoming[]): Due[] =>
  [...Map.groupBy(runs, run => run.task_id).values()].flatMap(([first, ...others]) =>
    first
      ? [
          {
            ...first,
            times: others.length + 1,
            goesOn: [first, ...others].some(run => run.more === true),
          },
        ]
      : [],
  )

/** Tasks whose runs are known only until some time, the soonest to end first. */
export const cutOff = (runs: readonly Upcoming[]): Upcoming[] =>
  runs.filter(run => run.more === true).sort((a, b) => Date.parse(a.at) - Date.parse(b.at))

/** Whole weeks, from Monday to Sunday, that have all of the month in them. */
export function weeksOf(month: Date, runs: readonly Upcoming[], now: Date): DayOfCalendar[][] {
  const sorted = runs.toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at))
  const byDay = Map.groupBy(sorted, run => dayKey(new Date(run.at)))
  const fromMonday = (month.getDay() + 6) % 7
  const weeks: DayOfCalendar[][] = []
  const today = dayKey(now)
  for (let offset = -fromMonday; ; offset += 7) {
    const first = new Date(month.getFullYear(), month.getMonth(), 1 + offset)
    if (offset > 0 && first.getMonth() !== month.getMonth()) return weeks
    weeks.push(
      Array.from({ length: 7 }, (_, i) => {
        // By the calendar and not by hours: a day may have 23 of them.
        const date = new Date(month.getFullYear(), month.getMonth(), 1 + offset + i)
        const key = dayKey(date)
        return {
          key,
          date,
          isOfMonth: date.getMonth() === month.getMonth(),
          isToday: key === today,
          due: dueOf(byDay.get(key) ?? []),
        }
      }),
    )
  }
}
