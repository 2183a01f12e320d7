import { z } from 'zod'

const lastInstant = Date.UTC(9999, 11, 31)

/** Somebody may have written any number into the database, and it has to be shown all the same. */
export const isoOf = (ms: number): string => new Date(Math.min(Math.max(ms, 0), lastInstant)).toISOString()

/** A moment: milliseconds since 1970 in the store and in memory, ISO 8601 for everybody else. */
export const instant = z.codec(z.iso.datetime(), z.number(), { decode: Date.parse, encode: isoOf })
