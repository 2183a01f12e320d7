import type { Upcoming } from '@hatchway/host/api-types'
import type { Task } from '@hatchway/protocol'
import { useMemo, useState } from 'react'
import { pathOf } from '../../host/ask.ts'
import { useAnswer } from '../../live/use-answer.ts'
import { absolute, count, timeOf } from '../../parts/figures.ts'
import { Icon } from '../../parts/icon.tsx'
import { Empty, Waiting } from '../../parts/parts.tsx'
import { shortly } from '../../parts/text.ts'
import { hrefOf, replace } from '../../shell/route.ts'
import { cutOff, type DayOfCalendar, monthKey, monthOf, monthsOn, weeksOf } from './calendar.ts'

/** Coming runs: a month on the wall, and on a phone the days that have some. */
const inCell = 3
const weekdays = new Intl.DateTimeFormat(undefined, { weekday: 'short' })
const monthName = new Intl.DateTimeFormat(undefined, { month: 'long', year: 'numeric' })
const dayName = new Intl.DateTimeFormat(undefined, { weekday: 'long', day: 'numeric', month: 'long' })
const furthest = 365
const namedAtMost = 5

interface CalendarProps {
  query: Readonly<Record<string, string>>
  tasks: readonly Task[]
}

export function CalendarView({ query, tasks }: CalendarProps) {
  const now = new Date()
  const month = monthOf(query.month, now)
  const until = monthsOn(month, 1).getTime() + 7 * 86_400_000
  const days = Math.min(Math.max(Math.ceil((until - now.getTime()) / 86_400_000), 1), furthest)
  const { value, error } = useAnswer<Upcoming[]>(pathOf('/api/host/tasks/upcoming', { days }), [
    'tasks',
    'jobs',
  ])
  const today = now.toDateString()
  const weeks = useMemo(
    () => weeksOf(monthOf(query.month, new Date(today)), value ?? [], new Date(today)),
    [query.month, value, today],
  )
  const names = useMemo(() => new Map(tasks.map(task => [task.id, task.job?.name ?? task.prompt])), [tasks])
  const cut = useMemo(() => cutOff(value ?? []), [value])
  const isThis = monthKey(month) === monthKey(now)
  const isLast = monthsOn(month, 1).getTime() > now.getTime() + furthest * 86_400_000
  const to = (target: Date) =>
    replace(
      hrefOf('tasks', undefined, {
        ...query,
        month: monthKey(target) === monthKey(now) ? undefined : monthKey(target),
      }),
    )
  const withRuns = weeks.flat().filter(day => day.isOfMonth && day.due.length > 0)

  return (
    <section className="calendar" aria-label="Coming runs">
      <header>
        <button
          type="button"
          className="quiet"
          disabled={isThis}
          onClick={() => to(monthsOn(month, -1))}
          aria-label="Month before"
        >
          <Icon name="left" />
        </button>
        <h2>{monthName.format(month)}</h2>
        <button
          type="button"
          className="quiet"
          disabled={isLast}
          onClick={() => to(monthsOn(month, 1))}
          aria-label="Month after"
        >
          <Icon name="right" />
        </button>
      </header>
      <Waiting value={value} error={error} />
      <table className="month">
        <thead>
          <tr>
            {weeks[0]?.map(({ key, date }) => (
              <th key={key} scope="col">
                {weekdays.format(date)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {weeks.map(week => (
            <tr key={week[0]?.key}>
              {week.map(day => (
                <DayCell key={day.key} day={day} names={names} query={query} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {cut.length > 0 && (
        <div className="hint goes-on">
          These run too often to show every run:
          <ul>
            {cut.slice(0, namedAtMost).map(({ task_id, prompt, at }) => (
              <li key={task_id}>
                <a href={hrefOf('tasks', task_id, query)}>{shortly(names.get(task_id) ?? prompt, 60)}</a> is
                shown until {dayName.format(Date.parse(at))}, and so on after that.
              </li>
            ))}
          </ul>
          {cut.length > namedAtMost && <>And {count(cut.length - namedAtMost)} more.</>}
        </div>
      )}
      <div className="agenda">
        {value && withRuns.length === 0 && (
          <Empty icon="tasks" title="Nothing is due this month">
            <p>Runs of active tasks are listed here by day.</p>
          </Empty>
        )}
        {withRuns.map(day => (
          <section key={day.key}>
            <h3>
              {dayName.format(day.date)}
              {day.isToday && ', today'}
            </h3>
            <Runs day={day} names={names} query={query} atMost={50} />
          </section>
        ))}
      </div>
    </section>
  )
}

interface DayProps {
  day: DayOfCalendar
  query: Readonly<Record<string, string>>
  names: ReadonlyMap<string, string>
}

function DayCell({ day, names, query }: DayProps) {
  const [isWhole, setWhole] = useState(false)
  const rest = day.due.length - inCell
  return (
    <td className={`${day.isOfMonth ? '' : 'other'} ${day.isToday ? 'today' : ''}`}>
      <time className="date" dateTime={day.key} title={dayName.format(day.date)}>
        {day.date.getDate()}
      </time>
      <Runs day={day} names={names} query={query} atMost={isWhole ? 200 : inCell} />
      {rest > 0 && (
        <button
          type="button"
          className="quiet small"
          aria-expanded={isWhole}
          onClick={() => setWhole(!isWhole)}
        >
          {isWhole ? 'fewer' : `${count(rest)} more`}
          <span className="unseen"> on {dayName.format(day.date)}</span>
        </button>
      )}
    </td>
  )
}

const Runs = ({ day, names, query, atMost }: DayProps & { atMost: number }) => (
  <ul className="due">
    {day.due.slice(0, atMost).map(({ task_id, at, prompt, group, times, goesOn }) => {
      const name = shortly(names.get(task_id) ?? prompt, 60)
      const ms = Date.parse(at)
      return (
        <li key={task_id}>
          <a href={hrefOf('tasks', task_id, query)} title={`${absolute(ms)}: ${name} (${shortly(group)})`}>
            <time dateTime={at}>{timeOf(ms)}</time>
            {times > 1 && <span className="times"> ×{count(times)}</span>} <span>{name}</span>
            {goesOn && <span className="times"> and so on</span>}
          </a>
        </li>
      )
    })}
    {day.due.length > atMost && atMost > inCell && (
      <li className="hint">and {count(day.due.length - atMost)} more</li>
    )}
  </ul>
)
