import { useState } from 'react'
import { shortly } from '../../parts/text.ts'
import { ceilingOf } from '../overview/plot.ts'
import { type Charted, type Measure, measured } from './usage.ts'

const width = 1000
const height = 220
const shortDay = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' })
export const dayOf = (day: string): string => shortDay.format(Date.parse(day))

interface UsageChartProps {
  charted: Charted
  measure: Measure
  written: (value: number) => string
}

/** A bar for each day, with a part for each model or group. The table below says the same in figures. */
export function UsageChart({ charted: { days, series }, measure, written }: UsageChartProps) {
  const [pointed, setPointed] = useState<number>()
  const value = (of: Charted['series'][number], i: number) => {
    const amounts = of.days[i]
    return amounts === undefined ? 0 : measured(amounts, measure)
  }
  const totals = days.map((_, i) => series.reduce((sum, each) => sum + value(each, i), 0))
  const largest = Math.max(...totals, 0)
  const top = largest < 1 && largest > 0 ? ceilingOf(largest * 10_000) / 10_000 : ceilingOf(largest)
  const step = width / days.length
  const shownDay = pointed === undefined ? undefined : days[pointed]
  return (
    <figure className="plot usage-plot">
      <figcaption>
        {shownDay !== undefined && pointed !== undefined ? (
          <>
            {dayOf(shownDay)}: <strong>{written(totals[pointed] ?? 0)}</strong>
          </>
        ) : (
          <>
            {days.length} days: <strong>{written(totals.reduce((sum, each) => sum + each, 0))}</strong>
          </>
        )}
      </figcaption>
      <div className="plot-field">
        <span className="plot-top">{written(top)}</span>
        <svg
          viewBox={`0 0 ${width} ${height}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`A bar for each day; the table below has the figures. The largest day: ${written(largest)}`}
          onPointerMove={({ clientX, currentTarget }) => {
            const { left, width: shown } = currentTarget.getBoundingClientRect()
            const i = Math.floor(((clientX - left) / shown) * days.length)
            setPointed(Math.min(Math.max(i, 0), days.length - 1))
          }}
          onPointerLeave={() => setPointed(undefined)}
        >
          {[0.25, 0.5, 0.75].map(part => (
            <line key={part} className="grid" x1={0} x2={width} y1={height * part} y2={height * part} />
          ))}
          {days.map((day, i) => {
            let y = height
            return (
              <g key={day} className={i === pointed ? 'pointed' : ''}>
                {series.map((each, n) => {
                  const tall = (value(each, i) / top) * (height - 4)
                  y -= tall
                  return tall === 0 ? null : (
                    <rect
                      key={each.name}
                      className={`series-${n}`}
                      x={i * step + step * 0.12}
                      width={step * 0.76}
                      y={y}
                      height={tall}
                    />
                  )
                })}
              </g>
            )
          })}
        </svg>
      </div>
      <p className="plot-times">
        <span>{days[0] !== undefined && dayOf(days[0])}</span>
        <span>today (UTC)</span>
      </p>
      <ul className="plot-keys">
        {series.map(({ name }, n) => (
          <li key={name}>
            <span className={`key series-${n}`} /> {shortly(name === '' ? '(not named)' : name, 40)}
          </li>
        ))}
      </ul>
    </figure>
  )
}
