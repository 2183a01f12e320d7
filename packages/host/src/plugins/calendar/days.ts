/** Kept small: the thread that reads what strangers wrote is started for every question. */
export const dayMs = 86_400_000

/** Of a day at midnight, as walls are kept. */
export const dayText = (wall: number): string => new Date(wall).toISOString().slice(0, 10)

/** Instants, of which the last one is not in it. */
export interface Range {
  from: number
  to: number
}
