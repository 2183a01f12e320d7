import { folderSchema, type Outcome, refusal, taskIdSchema } from '@hatchway/protocol'
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import type { Host } from '../types.ts'
import { commandOf, type GroupAnswer, messageOf, newGroupRequest, statusOf } from './answers.ts'
import { eventStream } from './events.ts'
import { ApiError, statusFor } from './failure.ts'
import { readRefused } from './refused-content.ts'

/**
 * What people and the console can see and do. The same application answers on the daemon's socket and, while no
 * daemon runs, inside the command that asks: one API, two ways to reach it.
 */
export interface ApiOptions {
  /** ends the event streams */
  signal?: AbortSignal
  heartbeatMs?: number
  eventBufferBytes?: number
  /** told of what should not have happened; left out: standard error */
  report?: (error: Error) => void
}

const flag = z.enum(['0', '1', 'true', 'false']).transform(value => value === '1' || value === 'true')
const whole = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,16}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.int().min(min).max(max))
const position = whole(0, Number.MAX_SAFE_INTEGER)

const largestBody = 65_536
const largestPage = 10_000
const page = { after: position.optional(), limit: whole(1, largestPage).optional() }

const tasksQuery = z.object({ group: folderSchema.optional(), all: flag.optional() })
const messagesQuery = z.object({
  group: folderSchema.optional(),
  status: z.enum(['pending', 'sent', 'failed']).optional(),
  last: whole(1, largestPage).optional(),
  ...page,
})
const errorsQuery = z.object({ group: folderSchema.optional(), code: z.string().optional() })
const commandsQuery = z.object({ group: folderSchema.optional(), type: z.string().optional(), ...page })
const eventsQuery = z.object({ group: folderSchema.optional() })
const contentQuery = z.object({ content: flag.optional() })
const errorId = z.string().min(1).max(256)

const taskCommands = { pause: 'pause_task', resume: 'resume_task', cancel: 'cancel_task' } as const

export function createApi(host: Host, options: ApiOptions = {}): Hono {
  const { heartbeatMs = 15_000, eventBufferBytes = 262_144, report = console.error } = options
  const signal = options.signal ?? new AbortController().signal
  const app = new Hono()

  app.onError((error, c) => {
    if (error instanceof ApiError) return fail(c, error)
    // What went wrong inside may quote anything; the log has it, the answer does not (lesson 13).
    report(error)
    return fail(c, new ApiError(refusal('internal', `The host failed: ${error.name}. Its log says more.`)))
  })
  app.notFound(c => fail(c, new ApiError(refusal('not_found', `There is no ${c.req.method} ${c.req.path}.`))))
  app.get('/status', c => c.json(statusOf(host)))

  app.get('/groups', c =>
    c.json(
      host.store.groups().map((group): GroupAnswer => {
        const mode = host.mode(group.folder)
        return mode === undefined ? group : { ...group, mode }
      }),
    ),
  )
  app.post('/groups', async c => {
    const { trigger, requires_trigger, channel, ...group } = check(newGroupRequest, await bodyOf(c.req.raw))
    const optional = present({ trigger, requires_trigger, channel })
    const outcome = await host.addGroup({ ...group, ...optional })
    const added = host.store.groups().find(({ folder }) => folder === group.folder)
    return outcome.ok && added ? c.json(added, 201) : done(c, outcome)
  })
  app.delete('/groups/:folder', async c =>
    done(c, await host.removeGroup(check(folderSchema, c.req.param('folder'), 'folder'))),
  )

  app.get('/tasks', c => {
    const { group, all = false } = check(tasksQuery, c.req.query())
    return c.json(host.store.tasks({ ...present({ group }), open: !all }))
  })
  app.post('/tasks/:id/:action{pause|resume|cancel}', async c => {
    const task_id = check(taskIdSchema, c.req.param('id'), 'id')
    const action = check(z.enum(['pause', 'resume', 'cancel']), c.req.param('action'), 'action')
    return done(c, await host.perform({ type: taskCommands[action], payload: { task_id } }))
  })

  app.get('/messages', c => {
    const { group, status, after, limit = largestPage, last } = check(messagesQuery, c.req.query())
    const filter = present({ group, status })
    const rows =
      last === undefined
        ? host.store.messages({ ...filter, ...present({ after }), limit })
        : newest(host, filter, last)
    return c.json(rows.map(messageOf))
  })

  app.get('/errors', c => {
    const { group, code } = check(errorsQuery, c.req.query())
    return c.json(
      host.quarantine
        .list()
        .filter(entry => group === undefined || entry.source_group === group)
        .filter(entry => code === undefined || entry.code === code),
    )
  })
  app.get('/errors/:id', c => {
    const id = check(errorId, c.req.param('id'), 'id')
    const { content = false } = check(contentQuery, c.req.query())
    const entry = host.quarantine.find(id)
    if (!entry) throw new ApiError(refusal('not_found', `No refused file has the id ${id}.`))
    if (!content) return c.json(entry)
    const path = host.quarantine.pathOf(entry)
    return c.json({
      ...entry,
      content: entry.kept ? readRefused(path, host.config.limits.fileBytes) : null,
    })
  })
  app.post('/errors/:id/replay', async c =>
    done(c, await host.replay(check(errorId, c.req.param('id'), 'id'))),
  )

  app.get('/commands', c => {
    const { group, type, after, limit = 100 } = check(commandsQuery, c.req.query())
    return c.json(host.store.commands({ ...present({ group, type, after }), limit }).map(commandOf))
  })
  app.get('/events', c => {
    const { group } = check(eventsQuery, c.req.query())
    return c.body(eventStream(host, { group, heartbeatMs, bufferBytes: eventBufferBytes, signal }), 200, {
      'content-type': 'application/x-ndjson',
    })
  })

  return app
}

const fail = (c: Context, { code, message }: ApiError) =>
  c.json({ error: { code, message } }, statusFor(code))

function done(c: Context, outcome: Outcome) {
  if (!outcome.ok) throw new ApiError(outcome.error)
  return c.json(outcome.result)
}

async function bodyOf(request: Request): Promise<unknown> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of request.body ?? []) {
    size += part.length
    if (size > largestBody) throw new ApiError(refusal('too_large', 'A request may have 64 KiB.'))
    parts.push(part)
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString('utf8'))
  } catch (error) {
    if (error instanceof SyntaxError) throw new ApiError(refusal('invalid_json', 'The body is not JSON.'))
    throw error
  }
}

function check<T>(schema: z.ZodType<T>, value: unknown, name = ''): T {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const field = [...(name === '' ? [] : [name]), ...(issue?.path ?? [])].join('.')
  throw new ApiError(
    refusal('invalid_field', field === '' ? `${issue?.message}` : `${field}: ${issue?.message}`),
  )
}

/** Leaves out what is undefined, as the types ask for. */
function present<T extends Record<string, unknown>>(
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

/** The last ones, oldest first. Ids rise, so the end of the table is looked through in growing steps. */
function newest(
  host: Host,
  filter: { group?: string; status?: 'pending' | 'sent' | 'failed' },
  count: number,
) {
  const end = host.store.lastMessageId()
  for (let span = count * 4; ; span *= 4) {
    const rows = host.store.messages({ ...filter, after: Math.max(0, end - span) })
    if (rows.length >= count || span >= end) return rows.slice(-count)
  }
}
