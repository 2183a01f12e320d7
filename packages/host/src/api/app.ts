import { folderSchema, refusal, taskIdSchema } from '@hatchway/protocol'
import { Hono } from 'hono'
import { z } from 'zod'
import type { Host } from '../types.ts'
import { commandOf, type GroupAnswer, messageOf, newGroupRequest, statusOf } from './answers.ts'
import { addApprovalRoutes } from './approvals.ts'
import { addAuditRoutes } from './audit.ts'
import { type ChatOptions, createChatRoutes } from './chat.ts'
import { eventStream } from './events.ts'
import { ApiError } from './failure.ts'
import { readRefused } from './refused-content.ts'
import { answerFailures, bodyOf, check, done, flag, present, whole } from './requests.ts'
import { addRunRoutes } from './runs.ts'
import { addServiceRoutes } from './services.ts'
import { addTaintRoutes } from './taints.ts'
import { addTaskRoutes } from './tasks.ts'
import { addUsageRoutes } from './usage.ts'

/**
 * What people and the console can see and do. The same application answers on the daemon's socket and, while no
 * daemon runs, inside the command that asks: one API, two ways to reach it.
 */
export interface ApiOptions {
  /** ends the event streams */
  signal?: AbortSignal
  heartbeatMs?: number
  eventBufferBytes?: number
  /** the chats, below /api/; only a daemon has them */
  chat?: Omit<ChatOptions, 'store' | 'config' | 'signal'>
  /** told of what should not have happened; left out: standard error */
  report?: (error: Error) => void
}

const position = whole(0, Number.MAX_SAFE_INTEGER)

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

  answerFailures(app, report)
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

  addTaskRoutes(app, host)
  addRunRoutes(app, host.store)
  addUsageRoutes(app, host.store)
  addServiceRoutes(app, host)
  addTaintRoutes(app, host.store)
  addAuditRoutes(app, host.store)
  addApprovalRoutes(app, host)
  if (options.chat) {
    const { store, config } = host
    app.route('/api', createChatRoutes({ ...options.chat, store, config, signal }))
  }

  return app
}

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
