import type { Rounds } from './statistics.ts'

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })

export const count = (value: number) => whole.format(value)

export const microseconds = (value: number) =>
  value < 10_000 ? `${count(value)} µs` : `${count(value / 1000)} ms`

export const timing = ({ p50, p99 }: Rounds) => `${microseconds(p50)} (p99 ${microseconds(p99)})`

export const times = (value: number) => `${value < 100 ? value.toFixed(2) : count(value)}×`

export const perSecond = (value: number) => `${count(value)} files/s`

export const absent = '–'
