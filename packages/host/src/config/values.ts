import { isAbsolute } from 'node:path'
import { z } from 'zod'

/** Kinds of values that several parts of the configuration have. */

export const whole = (from: number, to: number) => z.int().min(from).max(to)

export const path = z.string().min(1).refine(isAbsolute, 'must be an absolute path')
export const paths = z.array(path)

/** Shell commands, one after the other; the first that fails ends it. */
export const commands = z.array(z.string().min(1).max(10_000))

/** An address in the file must not bring a password with it: the environment holds those. */
export function isWithoutPassword(url: string): boolean {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  return parsed?.username === '' && parsed.password === ''
}

export const variableName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'must be the name of a variable: letters, digits and "_"')
