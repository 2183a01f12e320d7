import { type PointerEvent, useMemo, useState } from 'react'
import { count, secondOf, timeOf } from '../../parts/figures.ts'
import { ceilingOf, type Steps } from './plot.ts'

/** Commands per second over the last hour, drawn by hand: what was handled, and what of it was refused. */
const width = 1000
const height = 200

export function TrafficPlot({ steps: { stepMs, points } }: { steps: Steps }) {
  const [pointed, setPointed] = useState<number>()
  const perSecond = (value: number) => value / (stepMs / 1000)
  const { top, handled, refused } = useMemo(() => {
    const each = points.map(point => perSecondOf(point.handled, stepMs))
    const ceiling = ceilingOf(Math.max(...each, 0))
    return {
      top: ceiling,
      handled: shape(each, ceiling),
      refused: shape(
        points.map(point => perSecondOf(point.refused, stepMs)),
        ceiling,
      ),
    }
  }, [points, stepMs])
  const total = points.reduce((sum, point) => sum + point.handled, 0)
  const refusals = points.reduce((sum, point) => sum + point.refused, 0)
  const at = pointed === undefined ? undefined : points[pointed]

  const point = ({ clientX, currentTarget }: PointerEvent<SVGSVGElement>) => {
    const { left, width: shown } = currentTarget.getBoundingClientRect()
    const i = Math.round(((clientX - left) / shown) * (points.length - 1))
    setPointed(Math.min(Math.max(i, 0), points.length - 1))
  }
  const x = pointed === undefined ? 0 : (pointed / Math.max(points.length - 1, 1)) * width

  return (
    <figure className="plot">
      <figcaption>
        {at ? (
          <>
            {secondOf(at.at)}: <strong>{count(perSecond(at.handled))}</strong> handled per second,{' '}
            <strong>{count(perSecond(at.refused))}</strong> refused
          </>
        ) : (
          <>
            <span className="key handled" /> {count(total)} handled <span className="key refused" />{' '}
            {count(refusals)} refused in the last hour
          </>
        )}
      </figcaption>
      <div className="plot-field">
        <span className="plot-top">{count(top)}/s</span>
        <svg
          viewBox={`0 0 ${width} ${height}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`Commands in the last hour: ${count(total)} handled, ${count(refusals)} refused`}
          onPointerMove={point}
          onPointerLeave={() => setPointed(undefined)}
        >
          {[0.25, 0.5, 0.75].map(part => (
            <line key={part} className="grid" x1={0} x2={width} y1={height * part} y2={height * part} />
          ))}
          <path className="handled area" d={`${handled}L${width} ${height}L0 ${height}Z`} />
          <path className="handled line" d={handled} />
          <path className="refused area" d={`${refused}L${width} ${height}L0 ${height}Z`} />
          <path className="refused line" d={refused} />
          {at && <line className="cursor" x1={x} x2={x} y1={0} y2={height} />}
        </svg>
      </div>
      <p className="plot-times">
        <span>{points[0] && timeOf(points[0].at)}</span>
        <span>now</span>
      </p>
    </figure>
  )
}

const perSecondOf = (value: number, stepMs: number) => value / (stepMs / 1000)

function shape(values: readonly number[], top: number): string {
  const step = width / Math.max(values.length - 1, 1)
  const y = (value: number) => (height - (value / top) * (height - 4)).toFixed(1)
  return values.map((value, i) => `${i === 0 ? 'M' : 'L'}${(i * step).toFixed(1)} ${y(value)}`).join('')
}
