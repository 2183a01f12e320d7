import {
  dialectNameSchema,
  folderSchema,
  groupSchema,
  jidSchema,
  taskSchema,
  taskStatusSchema,
} from '@hatchway/protocol'
import { z } from 'zod'
import { changeKinds } from '../base/metrics/changes.ts'
import { roles } from '../config/roles.ts'
import { auditPointSchema, auditSchema } from '../store/entities/audit.ts'
import { ruleSchema } from '../store/entities/card.ts'
import { pairingSchema } from '../store/entities/chat.ts'
import { commandEventSchema, commandSchema } from '../store/entities/command.ts'
import { messageSchema } from '../store/entities/message.ts'
import { requestSchema } from '../store/entities/request.ts'
import { occurrenceSchema, runSchema, stepSchema, usageSchema } from '../store/entities/run.ts'
import { taintRowSchema, taintSchema } from '../store/entities/taint.ts'
import { webSessionSchema } from '../store/entities/web-session.ts'
import { fileAnswer } from './chat-answers.ts'
import { wire } from './wire.ts'

/**
 * What the API answers, as far as it is not about the chats. Routes make these, the client checks them, people script
 * against them, and the console has its types from here: this file imports nothing but schemas.
 */

export const statusAnswer = z
  .object({
    version: z.string(),
    pid: z.int(),
    data: z.string(),
    started_at: z.iso.datetime(),
    uptime_s: z.int(),
    durability: z.enum(['full', 'process']),
    groups: z.int(),
    handled: z.int().describe('commands since the start'),
    refused: z.int().describe('of these'),
    busy: z.boolean(),
    agents_enabled: z.boolean(),
    sandbox: z
      .object({
        name: z.string().describe('`none`: there is none that can be used'),
        isolated: z.boolean(),
        warning: z.string().nullable().describe('what has to stay on screen'),
      })
      .nullable()
      .describe('null: none has been chosen yet'),
    model_warning: z.string().nullable().describe('what keeps agents from asking their model'),
    model_ready: z
      .boolean()
      .describe('the usual agent asks a model, and nothing is known that keeps it from that'),
    channel_warning: z.string().nullable().describe('which chat apps hear nobody at the moment, and why'),
    problem: z.string().nullable().describe('why nothing can be stored at the moment, such as a full disk'),
  })
  .meta({ id: 'Status' })

/** What every group is limited to, under the names of the configuration: `limits`, and `agents` for its sandbox. */
export const groupLimits = wire(
  z.object({
    commandsPerMinute: z.int(),
    filesWaiting: z.int(),
    openTasks: z.int(),
    openRequests: z.int(),
    openTodos: z.int(),
    fileBytes: z.int(),
    memoryMb: z.int(),
    processes: z.int(),
    cpus: z.int(),
    runMs: z.int(),
  }),
)

export const groupAnswer = groupSchema
  .extend({
    mode: z.enum(['events', 'polling']).optional().describe('how its files are noticed, while a daemon runs'),
    sandbox: z.string().describe('what its agent runs in'),
    driver: z.string().describe('who answers'),
    repo: z.string().nullable().describe('the repository that its agent works on'),
    mounts: z
      .array(z.object({ from: z.string(), to: z.string(), writable: z.boolean() }))
      .describe('further directories that its agent sees'),
    limits: groupLimits.schema,
    taint: taintSchema.describe('what the conversation that goes on has read'),
    session: z.object({ state: z.string(), run_id: z.string() }).nullable(),
  })
  .meta({ id: 'Group' })

export const newGroupRequest = z.strictObject({
  folder: folderSchema,
  jid: jidSchema,
  name: z.string().min(1).max(256),
  main: z.boolean().default(false),
  dialect: dialectNameSchema.default('hatchway'),
  trigger: z.string().min(1).max(128).optional(),
  requires_trigger: z.boolean().optional(),
  channel: z.string().min(1).max(64).optional(),
})

/** What agents said. */
export const message = wire(messageSchema.omit({ nextAttemptAt: true, partsSent: true, partsTotal: true }))
export const messageAnswer = message.schema
  .extend({ attachments: z.array(fileAnswer).optional().describe('files that go along') })
  .meta({ id: 'Message' })

/** Who asks to be let in. */
export const pairing = wire(pairingSchema)
const pairingAnswer = pairing.schema
  .extend({
    notes: z
      .array(z.string())
      .describe('what whoever decides should know: letters and addresses that look like others'),
  })
  .meta({ id: 'Pairing' })

/** A chat app that can be added, or was. */
const channelAnswer = z
  .object({
    name: z.string(),
    title: z.string(),
    installed: z.boolean().describe('its library is'),
    added: z.boolean(),
    connected: z.boolean().nullable().describe('null: nothing of it runs here'),
    since: z.iso.datetime().nullable().describe('it is, or is not, connected'),
    last_error: z.string().nullable(),
    limited_until: z.iso.datetime().nullable().describe('the platform has asked to wait'),
    per_second: z.number().nullable().describe('messages that its account may send in all chats together'),
    waiting: z.int().describe('chats that wait for their turn, as the account may not say more now'),
    problem: z.string().nullable().describe('why it cannot be used at all'),
    confirm: z
      .object({ kind: z.enum(['qr', 'code']), value: z.string() })
      .nullable()
      .describe('what an operator has to scan or type in the app before it lets us in; for admins alone'),
    questions: z.array(z.object({ key: z.string(), question: z.string(), secret: z.boolean() })),
    next: z.array(z.string()).describe('what to do once it is added'),
  })
  .meta({ id: 'Channel' })
export const channelAddedAnswer = z.object({
  as: z.string().describe('who we are there'),
  next: z.array(z.string()),
})

const label = z.enum(['yes', 'no', 'forbidden']).optional()
const trustLabels = z.object({
  public_source: label,
  secret_data: label,
  public_sink: label,
  dangerous_writes: label,
})

/** An MCP server that is lent to agents. */
const lentServerAnswer = z
  .object({
    name: z.string(),
    where: z.string().describe('its origin, or its program; at the host the whole address, or all arguments'),
    added: z.boolean().describe('with `mcp add`; if not, it is in the configuration'),
    groups: z.union([z.enum(['all', 'main']), z.array(z.string())]),
    labels: trustLabels,
    up: z.boolean().nullable().describe('null: nothing of it runs here'),
    state: z.string().nullable(),
    tools: z.int().nullable().describe('how many are lent'),
  })
  .meta({ id: 'LentServer' })
export const lentServersAnswer = z.array(lentServerAnswer)
/** What a server has, when it is tried. */
export const lentServerTriedAnswer = z.object({
  tools: z.array(
    z.object({
      name: z.string().describe('what the server calls it'),
      lent_as: z.string(),
      title: z.string(),
      read_only: z.boolean().describe('it says that it changes nothing'),
      labels: trustLabels,
    }),
  ),
  problems: z.array(z.string()).describe('what is not lent although one might expect it, and why'),
  suggested: z
    .object({
      internet: z.boolean().describe('it reaches the internet'),
      private: z.boolean().describe('it holds private data'),
      known: z.string().nullable().describe('the program the suggestion is for; null: it is a guess'),
    })
    .describe('how the two questions are probably answered'),
})

export const removedAnswer = z.object({ removed: z.boolean() })

const refused = z.object({
  id: z.string(),
  original_file: z.string().nullable(),
  error: z.string(),
  processed_at: z.string(),
  source_group: z.string(),
  directory: z.string().nullable(),
  code: z.string(),
  type: z.string().nullable(),
  kept: z.boolean(),
  size: z.number(),
  count: z.number(),
})
export const errorAnswer = refused.meta({ id: 'Refused' })

export const errorContentAnswer = refused.extend({
  content: z
    .object({ base64: z.string(), truncated: z.boolean() })
    .nullable()
    .optional()
    .describe('only when asked for; null where there is no file to show'),
})

export const auditEntry = wire(auditSchema)
export const auditEntryAnswer = auditEntry.schema.meta({ id: 'AuditEntry' })
export const auditReportAnswer = z.discriminatedUnion('ok', [
  z.object({
    ok: z.literal(true),
    entries: z.int(),
    removed: z
      .object({ until: z.int(), at: z.iso.datetime() })
      .nullable()
      .describe('the last entry that was removed for its age'),
    head: auditPointSchema,
  }),
  z.object({ ok: z.literal(false), problem: z.string(), seq: z.int(), message: z.string() }),
])

/** A command of the journal, or as it happens: of the latter more is known, but not where its file lay. */
export const command = wire(
  commandSchema
    .omit({ inode: true, mtimeUs: true, reply: true })
    .partial({ directory: true })
    .extend(commandEventSchema.pick({ waitedMs: true, repeated: true }).partial().shape),
)
export const commandAnswer = command.schema.meta({ id: 'Command' })
export const wholeCommandAnswer = command.schema.extend({
  content: z
    .object({ text: z.string(), truncated: z.boolean() })
    .nullable()
    .describe('the file as it was received, while that is known: of the latest ones, and of those refused'),
  sender: z.object({
    group: z.string(),
    dialect: dialectNameSchema.nullable(),
    main: z.boolean().describe('whether it is a main group now'),
  }),
  steps: z
    .array(
      z.object({
        name: z.enum(['written', 'claimed', 'decided', 'answered']),
        at: z.iso.datetime(),
        note: z.string().optional(),
      }),
    )
    .describe('written: by its writer’s clock'),
  audit: z.array(auditEntryAnswer).describe('what the guard noted about the request'),
  error_id: z.string().nullable().describe('of the refused file'),
})

export const taskAnswer = taskSchema.meta({ id: 'Task' })
export const changedTaskAnswer = z.object({
  task_id: z.string(),
  status: taskStatusSchema,
  next_run: z.iso.datetime().nullable(),
})

export const eventAnswer = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('command'), command: commandAnswer }),
  z.object({ kind: z.literal('heartbeat'), at: z.iso.datetime() }),
  z.object({ kind: z.literal('dropped'), count: z.int() }),
])

/** One time that a task was due. */
export const occurrence = wire(occurrenceSchema.omit({ taskId: true, group: true, claimedAt: true }))
export const occurrenceAnswer = occurrence.schema

export const upcomingAnswer = z.array(
  z.object({
    task_id: z.string(),
    group: z.string(),
    prompt: z.string().describe('its beginning'),
    at: z.iso.datetime(),
    more: z
      .literal(true)
      .optional()
      .describe('the task runs again after this within the days asked for, and that is not listed'),
  }),
)

export const run = wire(runSchema)
export const runAnswer = run.schema
export const step = wire(stepSchema.omit({ runId: true }))
export const transcriptAnswer = runAnswer.extend({ steps: z.array(step.schema) })

export const usage = wire(usageSchema)
export const usageAnswer = z.array(
  usage.schema.extend({
    cost: z.number().nullable().describe('by the prices of the configuration; null: there is none'),
    currency: z.string().describe('what the cost is in'),
  }),
)
export const limitsAnswer = z.array(
  z.object({
    group: z.string().nullable().describe('null: all groups together'),
    limit: z.enum(['tokensPerDay', 'tokensPerMonth', 'costPerDay', 'costPerMonth']),
    used: z.number(),
    most: z.number().describe('with what it was raised by today'),
  }),
)
export const modelsAnswer = z.array(
  z.object({
    group: z.string().nullable().describe('null: of all groups without one of their own'),
    provider: z.string().nullable(),
    name: z.string().nullable(),
    url: z.string(),
    key_variable: z.string().nullable().describe('null: no key is needed'),
    problem: z.string().nullable(),
  }),
)

export const foundModelsAnswer = z.object({
  current: z
    .object({ provider: z.string(), name: z.string().nullable() })
    .nullable()
    .describe('the model for groups without one of their own; null: no provider is named'),
  is_configured: z.boolean().describe('the configuration names it, so that none can be chosen here'),
  found: z.array(
    z.object({
      provider: z.string(),
      title: z.string(),
      url: z.string(),
      key_variable: z.string().nullable().describe('the variable that has the key; null: no key is needed'),
      models: z.array(z.string()).describe('the best guess first'),
      problem: z.string().nullable(),
    }),
  ),
})
export const chosenModelAnswer = z.object({
  provider: z.string(),
  name: z.string(),
  driver: z.string().describe('the agent that asks it'),
})

export const rule = wire(ruleSchema)
export const approvalRuleAnswer = rule.schema

const { group: ofGroup, context } = taintRowSchema.shape
const since = z.object({ by: z.string(), at: z.iso.datetime() }).nullable()
export const taintAnswer = z.object({
  group: ofGroup,
  context,
  corrupted: since.describe('what brought in strangers’ words first, and when'),
  secret: since.describe('what brought in secrets first, and when'),
})
export const clearedTaintAnswer = z.object({ group: z.string(), context: z.string() })

export const request = wire(
  requestSchema.pick({ seq: true, group: true, tool: true, createdAt: true, expiresAt: true }),
)
export const requestsAnswer = z.array(request.schema.extend({ id: z.string().nullable() }))

export const servicesAnswer = z.array(
  z.object({
    name: z.string(),
    ok: z.boolean(),
    text: z.string().describe('whether it can be used, and if not why'),
    tools: z.array(
      z.object({
        name: z.string(),
        title: z.string(),
        description: z.string(),
        groups: z.union([z.enum(['all', 'main']), z.array(z.string())]),
        labels: trustLabels,
        timeout_ms: z.number().nullable().describe('null: it is done with the command itself'),
        repeatable: z.boolean().describe('whether it is asked again after a restart in the middle'),
      }),
    ),
  }),
)

const health = z.object({ name: z.string(), ok: z.boolean(), text: z.string() })

/** What only whoever has the data directory can tell the doctor. */
export const checkupAnswer = z.object({
  store: z
    .object({
      version: z.int(),
      newest: z.int(),
      damage: z.array(z.string()),
      installation: z.string().nullable(),
      groups: z.array(
        z.object({
          folder: z.string(),
          jid: z.string(),
          main: z.boolean(),
          dialect: dialectNameSchema,
          uid: z.int().nullable().describe('of its agents, where the host is root'),
        }),
      ),
      messages: z.object({ pending: z.int(), failed: z.int() }),
      latest: z.number().nullable(),
      audit: z.object({ ok: z.boolean(), message: z.string() }),
    })
    .nullable()
    .describe('null: there is no room for the copy that is looked at'),
  clock_jump_ms: z.number().describe('how far the clock was set since the daemon began'),
  modes: z.record(z.string(), z.enum(['events', 'polling'])),
  channels: z.record(z.string(), z.string()).describe('the channel of each group’s chat'),
  channel_problems: z
    .array(z.object({ channel: z.string(), problem: z.string() }))
    .describe('channels that cannot be used, and why'),
  troubled: z
    .array(z.object({ channel: z.string(), waiting: z.int(), error: z.string() }))
    .describe('channels that could not deliver something yet, and what they said last'),
  liveness: z
    .array(
      z.object({
        channel: z.string(),
        connected: z.boolean(),
        since: z.iso.datetime().describe('since when it is, or is not'),
        last_error: z.string().nullable(),
        limited_until: z.iso
          .datetime()
          .nullable()
          .describe('messages are held back, as the platform has asked'),
        to_confirm: z.boolean().describe('a person has to let it in, in the platform’s own app'),
      }),
    )
    .describe('the channels that can lose their platform'),
  services: z.array(health),
  problem: z.string().nullable().describe('why nothing can be stored at the moment'),
  model: z.string().nullable().describe('what keeps agents from asking their model'),
})

export const meAnswer = z.object({
  name: z.string(),
  role: z.enum(roles),
  csrf: z.string().describe('to be sent with every change, as the header x-hatchway-csrf'),
})
export const waysAnswer = z.object({
  password: z.boolean(),
  oidc: z.string().nullable().describe('where to go to sign in with the provider'),
})

export const webSession = wire(webSessionSchema.omit({ idHash: true, credential: true, claims: true }))
export const sessionsAnswer = z.array(
  webSession.schema.extend({ role: z.enum(roles), current: z.boolean().describe('the one that asks') }),
)

const count = z.int()
const trafficPoint = z.object({ at: z.iso.datetime(), handled: count, refused: count })

export const overviewAnswer = z.object({
  status: statusAnswer,
  groups: count,
  sessions: z.array(
    z.object({
      run_id: z.string(),
      group: z.string(),
      kind: z.enum(['chat', 'task']),
      state: z.string(),
      started_at: z.iso.datetime().nullable(),
    }),
  ),
  waiting: z
    .object({
      messages: count.describe('not delivered yet'),
      requests: count.describe('of agents, that services or the host are at'),
      approvals: count,
      questions: count,
      errors: count.describe('refused files to look at'),
      deploys: count,
    })
    .describe('what waits for somebody or something'),
  latency: z
    .object({
      p50_us: z.number().nullable(),
      p99_us: z.number().nullable(),
      waited_p50_ms: z.number().nullable(),
      waited_p99_ms: z.number().nullable(),
      count: count.describe('commands since the start'),
    })
    .describe('of the latest 4096: from claimed to durable, and how long the file had lain there before'),
  traffic: z.object({
    step_s: count,
    points: z.array(trafficPoint).describe('of the last hour, since the start, oldest first'),
  }),
  tasks: z.object({ active: count, paused: count, next_run: z.iso.datetime().nullable() }),
})

export const settingsAnswer = z.array(
  z.object({
    name: z.string(),
    value: z.union([z.string(), z.number()]).nullable().describe('null: unset, or no single value'),
    source: z
      .string()
      .describe('the file, a variable, `command line`, `default`, or the program that started the host'),
    default: z.string(),
    description: z.string(),
    env: z.string().describe('the variable that overrides the file; empty: there is none'),
  }),
)

export const feedEventAnswer = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('hello'),
    complete: z.boolean().describe('whether nothing was missed; if not, everything is to be read again'),
  }),
  z
    .object({ kind: z.literal('command'), command: commandAnswer })
    .describe('was handled; comes a second time when its answer has followed'),
  z.object({
    kind: z.literal('run'),
    run_id: z.string(),
    group: z.string(),
    run_kind: z.enum(['chat', 'task']),
    state: z.enum(['working', 'idle', 'stopping', 'closing', 'ended']),
  }),
  z.object({ kind: z.literal('changed'), what: z.enum(changeKinds) }),
  z
    .object({
      kind: z.literal('traffic'),
      at: z.iso.datetime(),
      handled: z.int(),
      refused: z.int(),
    })
    .describe('in the second before; has no id'),
])

export const groupsAnswer = z.array(groupAnswer)
export const tasksAnswer = z.array(taskAnswer)
export const occurrencesAnswer = z.array(occurrenceAnswer)
export const runsAnswer = z.array(runAnswer)
export const messagesAnswer = z.array(messageAnswer)
export const pairingsAnswer = z.array(pairingAnswer)
export const channelsAnswer = z.array(channelAnswer)
export const errorsAnswer = z.array(errorAnswer)
export const commandsAnswer = z.array(commandAnswer)
export const auditAnswer = z.array(auditEntryAnswer)
export const approvalRulesAnswer = z.array(approvalRuleAnswer)
export const taintsAnswer = z.array(taintAnswer)
export const wipedAnswer = z.object({
  folder: z.string(),
  removed: z.number().describe('how many directories there were'),
  still_tainted: z.array(z.string()).describe('text that lies elsewhere, and taints whoever is given it'),
})
export { resultSchema as resultAnswer } from '@hatchway/protocol'

export type StatusAnswer = z.infer<typeof statusAnswer>
export type GroupAnswer = z.infer<typeof groupAnswer>
export type MessageAnswer = z.infer<typeof messageAnswer>
export type PairingAnswer = z.infer<typeof pairingAnswer>
export type ChannelAnswer = z.infer<typeof channelAnswer>
export type ChannelAddedAnswer = z.infer<typeof channelAddedAnswer>
export type LentServerAnswer = z.infer<typeof lentServerAnswer>
export type LentServerTriedAnswer = z.infer<typeof lentServerTriedAnswer>
export type ErrorAnswer = z.infer<typeof errorAnswer>
export type ErrorContentAnswer = z.infer<typeof errorContentAnswer>
export type CommandAnswer = z.infer<typeof commandAnswer>
export type WholeCommandAnswer = z.infer<typeof wholeCommandAnswer>
export type EventAnswer = z.infer<typeof eventAnswer>
export type AuditEntryAnswer = z.infer<typeof auditEntryAnswer>
export type AuditReportAnswer = z.infer<typeof auditReportAnswer>
export type OccurrenceAnswer = z.infer<typeof occurrenceAnswer>
export type UpcomingAnswer = z.infer<typeof upcomingAnswer>
export type RunAnswer = z.infer<typeof runAnswer>
export type TranscriptAnswer = z.infer<typeof transcriptAnswer>
export type UsageAnswer = z.infer<typeof usageAnswer>
export type LimitsAnswer = z.infer<typeof limitsAnswer>
export type FoundModelsAnswer = z.infer<typeof foundModelsAnswer>
export type ModelsAnswer = z.infer<typeof modelsAnswer>
export type ApprovalRuleAnswer = z.infer<typeof approvalRuleAnswer>
export type TaintsAnswer = z.infer<typeof taintsAnswer>
export type RequestsAnswer = z.infer<typeof requestsAnswer>
export type ServicesAnswer = z.infer<typeof servicesAnswer>
export type Checkup = z.infer<typeof checkupAnswer>
export type MeAnswer = z.infer<typeof meAnswer>
export type SessionsAnswer = z.infer<typeof sessionsAnswer>
export type OverviewAnswer = z.infer<typeof overviewAnswer>
export type SettingsAnswer = z.infer<typeof settingsAnswer>
export type FeedEventAnswer = z.infer<typeof feedEventAnswer>
