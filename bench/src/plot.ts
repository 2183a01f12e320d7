import { scaleLog } from 'd3-scale'
import { line } from 'd3-shape'

interface Point {
  x: number
  y: number
}

export interface Series {
  name: string
  points: readonly Point[]
  /** it stops before the others, and this is why */
  ended?: string
}

interface Panel {
  title: string
  /** what runs to the right */
  across: string
  series: readonly Series[]
  /** how a value on the left is written */
  format(value: number): string
}

interface Drawing {
  /** what it shows, for those who cannot see it */
  title: string
  panels: readonly Panel[]
  columns: number
  /** each name has its own colour, and keeps it in every picture that is given the same names */
  names: readonly string[]
}

/** Both a white and a black page let all of them be read. */
const colours = ['#d9480f', '#2f81d0', '#2a9d5c', '#9a63d8', '#b8860b', '#7d8590']
const [width, height] = [440, 300]
const margin = { top: 40, right: 128, bottom: 44, left: 70 }
const labelGap = 14

const style = `
  text { font: 12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif; fill: #6e7781 }
  .title { font-weight: 600; font-size: 13px }
  .grid { stroke: #8c959f; stroke-opacity: .25 }
  .line { fill: none; stroke-width: 1.75 }
  .own { stroke-width: 3 }
  .lead { stroke-width: 1; stroke-dasharray: 1 3 }
  @media (prefers-color-scheme: dark) { text { fill: #9198a1 } }`

const asText = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
const short = (value: number) => value.toFixed(1).replace(/\.0$/, '')
const thousands = new Intl.NumberFormat('en-US')

/** Whole powers of ten around all values. */
const decades = (values: readonly number[]): [number, number] => {
  const low = Math.floor(Math.log10(Math.min(...values)))
  const high = Math.ceil(Math.log10(Math.max(...values)))
  return [10 ** low, 10 ** Math.max(high, low + 1)]
}

const powers = ([low, high]: [number, number]) =>
  Array.from({ length: Math.round(Math.log10(high / low)) + 1 }, (_, index) => low * 10 ** index)

/** Labels as near to the ends of their lines as they can be without covering each other. */
const spread = (wanted: readonly number[], low: number, high: number): number[] => {
  const order = wanted.map((y, index) => ({ y, index })).toSorted((a, b) => a.y - b.y)
  let last = low - labelGap
  for (const place of order) last = place.y = Math.max(place.y, last + labelGap)
  let next = high + labelGap
  for (const place of order.toReversed()) next = place.y = Math.min(place.y, next - labelGap)
  const placed: number[] = []
  for (const { y, index } of order) placed[index] = y
  return placed
}

const cross = (x: number, y: number, colour: string) =>
  `<path stroke="${colour}" stroke-width="2" d="M${short(x - 4)} ${short(y - 4)}l8 8m0 -8l-8 8"/>`

const drawPanel = ({ title, across, series, format }: Panel, colourOf: (name: string) => string) => {
  const drawn = series.filter(({ points }) => points.length > 0)
  const points = drawn.flatMap(one => one.points)
  const right = width - margin.right
  const bottom = height - margin.bottom
  const domain = decades(points.map(({ y }) => y))
  const sizes = points.map(({ x }) => x)
  const across10 = powers([Math.min(...sizes), Math.max(...sizes)])
  const x = scaleLog([Math.min(...sizes), Math.max(...sizes)], [margin.left, right])
  const y = scaleLog(domain, [bottom, margin.top])
  const path = line<Point>(
    point => x(point.x),
    point => y(point.y),
  ).digits(1)
  const ends = drawn.map(one => one.points.at(-1) ?? { x: 1, y: 1 })
  const labels = spread(
    ends.map(end => y(end.y)),
    margin.top,
    bottom,
  )
  return [
    `<text class="title" x="${margin.left}" y="20">${asText(title)}</text>`,
    `<text x="${(margin.left + right) / 2}" y="${height - 8}" text-anchor="middle">${asText(across)}</text>`,
    ...powers(domain).flatMap(value => [
      `<line class="grid" x1="${margin.left}" x2="${right}" y1="${short(y(value))}" y2="${short(y(value))}"/>`,
      `<text x="${margin.left - 8}" y="${short(y(value) + 4)}" text-anchor="end">${asText(format(value))}</text>`,
    ]),
    ...across10.map(
      value =>
        `<text x="${short(x(value))}" y="${bottom + 18}" text-anchor="middle">${thousands.format(value)}</text>`,
    ),
    ...drawn.flatMap(({ name, points: own, ended }, index) => {
      const colour = colourOf(name)
      const end = ends[index] ?? { x: 1, y: 1 }
      const at = labels[index] ?? 0
      return [
        `<path class="line${name.startsWith('Hatchway') ? ' own' : ''}" stroke="${colour}" d="${path([...own])}"/>`,
        ...own.map(
          point => `<circle cx="${short(x(point.x))}" cy="${short(y(point.y))}" r="2.5" fill="${colour}"/>`,
        ),
        ended === undefined ? '' : cross(x(end.x), y(end.y), colour),
        `<path class="lead" stroke="${colour}" d="M${short(x(end.x))} ${short(y(end.y))}L${right + 8} ${short(at)}"/>`,
        `<text x="${right + 11}" y="${short(at + 4)}" style="fill:${colour}">${asText(name)}${ended === undefined ? '' : ' ✕'}</text>`,
        ended === undefined ? '' : `<desc>${asText(`${name}: ${ended}`)}</desc>`,
      ]
    }),
  ]
    .filter(part => part !== '')
    .join('\n    ')
}

/** Panels side by side, both axes in powers of ten, each line with its name at its end. Needs no browser to be made. */
export const draw = ({ title, panels, columns, names }: Drawing): string => {
  const colourOf = (name: string) => colours[names.indexOf(name) % colours.length] ?? 'currentColor'
  const size = [width * Math.min(columns, panels.length), height * Math.ceil(panels.length / columns)]
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.join(' ')}" width="${size[0]}" height="${size[1]}" role="img">
  <title>${asText(title)}</title>
  <style>${style}
  </style>
${panels
  .map(
    (panel, index) =>
      `  <g transform="translate(${(index % columns) * width} ${Math.floor(index / columns) * height})">
    ${drawPanel(panel, colourOf)}
  </g>`,
  )
  .join('\n')}
</svg>
`
}
