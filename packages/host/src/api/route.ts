import { type Outcome, refusal } from '@hatchway/protocol'
import type { Hono, Context as Request } from 'hono'
import { z } from 'zod'
import type { Role } from '../config/web.ts'
import { ApiError } from './failure.ts'
import { bodyOf, check } from './requests.ts'

/**
 * One thing that can be asked for. What answers it and what docs/openapi.json says of it both come from here: there is
 * no second place to keep in step.
 */
export interface Description {
  method: 'get' | 'post' | 'patch' | 'delete'
  /** below where its list is mounted: /tasks/:id */
  path: string
  summary: string
  tag: string
  /** who may ask; `anyone` has not signed in */
  role: Role | 'anyone'
  params?: z.ZodObject
  query?: z.ZodObject
  body?: z.ZodType
  /** what is not JSON is sent as this */
  takes?: string
  answer: z.ZodType
  /** what is not JSON is answered as this; the schema is that of each event, or of the text */
  gives?: string
  /** whether the answer goes on for as long as somebody reads it */
  isStream?: true
  status?: 200 | 201 | 302
  /** another way in which it succeeds, with the same answer */
  otherStatus?: 200 | 201
}

/** Who asks. On the daemon's socket that is the operator. */
export interface Caller {
  name: string
  role: Role
  /** came through the socket that only the daemon's own user may enter */
  isAtHost: boolean
  /** what goes on for them ends here */
  until?: AbortSignal | undefined
}
const operatorCaller: Caller = { name: 'Operator', role: 'admin', isAtHost: true }

export interface Route<Context> extends Description {
  respond(context: Context, request: Request, caller: Caller): Promise<Response>
}

/** What plugins add, and below which path. */
export type PluginRoutes = readonly { path: string; routes: readonly Route<unknown>[] }[]

/** Nobody signs in for these: whoever asks has to prove to the route itself who they are. */
export interface PublicRoutes {
  routes: PluginRoutes
  /** they are served where the console is not, too */
  needWebServer: boolean
}

interface Input<P, Q, B> {
  params: P
  query: Q
  body: B
  request: Request
  caller: Caller
}

/** What is only looked at need not be changeable. */
type Sent<T> = T extends readonly (infer Item)[]
  ? readonly Sent<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Sent<T[Key]> }
    : T

type Definition<Context, A, P, Q, B> = Omit<Description, 'method' | 'path' | 'tag'> & {
  params?: P
  query?: Q
  body?: B
  answer: A
  /** one that needs more than its answer returns a response itself */
  handle(
    context: Context,
    input: Input<z.output<P>, z.output<Q>, z.output<B>>,
  ): Sent<z.output<A>> | Response | Promise<Sent<z.output<A>> | Response>
}

/** For routes about one thing that need `Context` to be answered: `.get('/tasks', {…})`. */
export function routesOf<Context>(tag: string) {
  const taking =
    (method: Description['method']) =>
    <
      A extends z.ZodType,
      P extends z.ZodObject = z.ZodObject<Record<never, never>>,
      Q extends z.ZodObject = z.ZodObject<Record<never, never>>,
      B extends z.ZodType = z.ZodUndefined,
    >(
      path: string,
      { handle, ...description }: Definition<Context, A, P, Q, B>,
    ): Route<Context> => ({
      ...description,
      method,
      path,
      tag,
      async respond(context, request, caller) {
        const { params = nothing, query = nothing, body = z.undefined(), status = 200 } = description
        const given = await handle(context, {
          params: parsed<P>(params, request.req.param()),
          query: parsed<Q>(query, request.req.query()),
          body: parsed<B>(body, description.body ? await bodyOf(request.req.raw) : undefined),
          request,
          caller,
        })
        return given instanceof Response ? given : request.json(given, status === 302 ? 200 : status)
      },
    })
  return { get: taking('get'), post: taking('post'), patch: taking('patch'), delete: taking('delete') }
}

const nothing = z.object({})

/** The same routes with what they need put in. */
export const bindRoutes = <Context>(
  routes: readonly Route<Context>[],
  context: Context,
): readonly Route<unknown>[] =>
  routes.map(route => ({
    ...route,
    respond: (_, request, caller) => route.respond(context, request, caller),
  }))

/** The schema is the one that was described, or the empty one that stands for it. */
const parsed = <S extends z.ZodType>(schema: z.ZodType, value: unknown): z.output<S> =>
  check(schema as z.ZodType<z.output<S>>, value)

/**
 * `callerOf` says who asks, or throws where they may not. A path that is known under other methods answers 405 to the
 * rest; HEAD is a GET without its body, but not of what never ends: nobody would read it, and nothing would end it.
 */
export function mount<Context>(
  app: Hono,
  prefix: string,
  routes: readonly Route<Context>[],
  context: Context,
  callerOf: (request: Request, route: Description) => Caller = () => operatorCaller,
): void {
  for (const route of routes) {
    app.on(route.method.toUpperCase(), `${prefix}${route.path}`, (request, next) =>
      route.isStream && request.req.method === 'HEAD'
        ? next()
        : route.respond(context, request, callerOf(request, route)),
    )
  }
  const byPath = Map.groupBy(routes, ({ path }) => path)
  for (const [path, known] of byPath) {
    const allowed = known.flatMap(({ method, isStream }) =>
      method === 'get' && !isStream ? ['GET', 'HEAD'] : [method.toUpperCase()],
    )
    app.all(`${prefix}${path}`, request => {
      request.header('allow', allowed.join(', '))
      const message = `This path does not take ${request.req.method}, but ${allowed.join(', ')}.`
      throw new ApiError(refusal('not_found', message), 405)
    })
  }
}

/** What an operation came to, or the refusal. */
export function resultOf(outcome: Outcome): Record<string, unknown> {
  if (!outcome.ok) throw new ApiError(outcome.error)
  return outcome.result
}

/** When a stream has to end: with the server, or when whoever reads it is put out. */
export const endOf = (signal: AbortSignal, { until }: Caller): AbortSignal =>
  until ? AbortSignal.any([signal, until]) : signal

export const notFound = (message: string) => new ApiError(refusal('not_found', message))
export const unavailable = (message: string) => new ApiError(refusal('unavailable', message))
