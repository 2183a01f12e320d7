import { refusal } from '@hatchway/protocol'
import type { Context, Hono } from 'hono'
import { z } from 'zod'
import { ApiError, statusFor } from './failure.ts'

/** What every route does with requests: check them, and say what is wrong with them. */
export const flag = z.enum(['0', '1', 'true', 'false']).transform(value => value === '1' || value === 'true')
export const whole = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,16}$/, 'must be a whole number')
    .meta({ wholeNumber: { minimum: min, maximum: max } })
    .transform(Number)
    .pipe(z.int().min(min).max(max))

export const largestPage = 10_000
export const position = whole(0, Number.MAX_SAFE_INTEGER)
export const page = { after: position.optional(), limit: whole(1, largestPage).optional() }

const largestBody = 65_536

/** Refusals are answered with their code; for what should not have happened the log says more than the answer. */
export function answerFailures(
  app: Hono,
  report: (error: Error) => void,
  inWords: (c: Context, error: ApiError) => Response | Promise<Response> | undefined = () => undefined,
): void {
  app.onError((error, c) => {
    if (error instanceof ApiError) return inWords(c, error) ?? fail(c, error)
    // What went wrong inside may quote anything; the log has it, the answer does not.
    report(error)
    return fail(c, new ApiError(refusal('internal', `The host failed: ${error.name}. Its log says more.`)))
  })
  app.notFound(c => fail(c, new ApiError(refusal('not_found', `There is no ${c.req.method} ${c.req.path}.`))))
}

const fail = (c: Context, error: ApiError) => {
  if (error.retryAfterS !== undefined) c.header('retry-after', String(error.retryAfterS))
  return c.json({ error: { code: error.code, message: error.message } }, statusFor(error))
}

export async function bytesOf(request: Request): Promise<Buffer> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of request.body ?? []) {
    size += part.length
    if (size > largestBody) throw new ApiError(refusal('too_large', 'A request may have 64 KiB.'))
    parts.push(part)
  }
  return Buffer.concat(parts)
}

export async function bodyOf(request: Request): Promise<unknown> {
  const bytes = await bytesOf(request)
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch (error) {
    if (error instanceof SyntaxError) throw new ApiError(refusal('invalid_json', 'The body is not JSON.'))
    throw error
  }
}

export function check<T>(schema: z.ZodType<T>, value: unknown, name = ''): T {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const field = [...(name === '' ? [] : [name]), ...(issue?.path ?? [])].join('.')
  throw new ApiError(
    refusal('invalid_field', field === '' ? `${issue?.message}` : `${field}: ${issue?.message}`),
  )
}

/** Leaves out what is undefined, as the types ask for. */
export function present<T extends Record<string, unknown>>(
  values: T,
): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const kept: { [K in keyof T]?: Exclude<T[K], undefined> } = {}
  for (const key in values) {
    const value = values[key]
    if (isDefined(value)) kept[key] = value
  }
  return kept
}

const isDefined = <T>(value: T): value is Exclude<T, undefined> => value !== undefined
