import { readlinkSync } from 'node:fs'
import { z } from 'zod'
import { calendarsSchema } from '../plugins/calendar/settings.ts'
import { deploySchema } from '../plugins/deploy/settings.ts'
import { hostJobsSchema } from '../plugins/jobs/settings.ts'
import { lentServersSchema } from '../plugins/mcp/settings.ts'
import { memorySchema } from '../plugins/memory/settings.ts'
import { webhookSchema } from '../plugins/webhook/settings.ts'
import { groupRepoSchema, reposSchema, unknownRepos } from '../plugins/worktrees/settings.ts'
import { inspectorSchema } from './inspector.ts'
import { driverNames, sandboxNames } from './names.ts'
import { whole } from './values.ts'
import { webSchema } from './web.ts'

/**
 * Every value that can be configured, with what it means and what it may be. The environment names, the messages
 * about wrong values and the table in docs/configuration.md all come from here.
 */
const largest = Number.MAX_SAFE_INTEGER
const day = 86_400_000

/** `Intl` also takes offsets such as +02:00, which know nothing of summer time. */
const isTimeZone = (name: string): boolean => {
  if (!/^[A-Za-z]/.test(name)) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}

/** Asking Intl costs eight megabytes; on most machines a link says it. */
const linkedTimeZone = (): string | undefined => {
  if (process.env.TZ !== undefined) return undefined
  try {
    const name = /\/zoneinfo\/([A-Za-z][A-Za-z0-9_+/-]*)$/.exec(readlinkSync('/etc/localtime'))?.[1]
    if (name === 'Etc/UTC') return 'UTC'
    // What lies beside the zones there is none.
    return name !== undefined && /^(?:[A-Z][A-Za-z_]+\/[A-Za-z0-9_+/-]+|UTC)$/.test(name) ? name : undefined
  } catch (error) {
    // No link: Intl finds out in its own way.
    if (error instanceof Error && 'code' in error) return undefined
    throw error
  }
}

const machineTimeZone = () => {
  const linked = linkedTimeZone()
  if (linked !== undefined) return linked
  const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone
  return isTimeZone(zone) ? zone : 'UTC'
}

const limits = z.strictObject({
  fileBytes: whole(1, 268_435_456)
    .default(1_048_576)
    .describe('The largest file that is read. A larger one is refused with `too_large`.'),
  jsonDepth: whole(1, 1000)
    .default(64)
    .describe('How deeply objects and arrays may be nested in a file. Deeper is refused with `too_deep`.'),
  commandsPerMinute: whole(1, largest)
    .default(60_000)
    .describe(
      'Commands of one group handled in a minute; one counts again for each 4 KiB. Over it, the group’s files wait.',
    ),
  filesWaiting: whole(1, largest)
    .default(50_000)
    .describe('Files of one group that may wait. Over it, the newest are refused and counted in one entry.'),
  openTasks: whole(1, 1_000_000)
    .default(1000)
    .describe('Active and paused tasks of one group. Over it, a new one is refused with `quota_exceeded`.'),
  openTaskBytes: whole(1, largest)
    .default(1_048_576)
    .describe(
      'What the open tasks of one group may hold together: prompts, scripts, commands. Over it: the same.',
    ),
  openRequests: whole(1, 1_000_000)
    .default(1000)
    .describe(
      'Requests of one group to services and to people that are not answered yet. Over it: `quota_exceeded`.',
    ),
  openRequestBytes: whole(1, largest)
    .default(16_777_216)
    .describe(
      'What the requests of one group that are not answered yet may hold together. Over it: the same.',
    ),
  openTodos: whole(1, 1_000_000)
    .default(1000)
    .describe('Todos of one group that are not done. Over it, a new one is refused with `quota_exceeded`.'),
  messageBytes: whole(65_536, largest)
    .default(67_108_864)
    .describe(
      'Space for one group’s messages of more than 1 KiB. Over it, the oldest are forgotten; at twice that, a new one is refused with `quota_exceeded` until they are.',
    ),
  attachmentBytes: whole(1, 1_073_741_824)
    .default(26_214_400)
    .describe('The largest file that goes along with a message, in both directions.'),
  errorBytes: whole(0, largest)
    .default(268_435_456)
    .describe('Space for one group’s refused files in `ipc/errors`. Over it, they are counted and not kept.'),
})

const keep = z.strictObject({
  commands: whole(1, largest)
    .default(1_000_000)
    .describe(
      'Handled commands that are remembered, the newest. A request id older than that is no longer known as a repeat.',
    ),
  messages: whole(1, largest)
    .default(1_000_000)
    .describe('Messages that are remembered, the newest. One that is not delivered yet is always kept.'),
  fileBytes: whole(1, largest)
    .default(1_073_741_824)
    .describe(
      'Space for the host’s copies of one group’s attachments in `files`. Over it, the oldest are not kept.',
    ),
  runs: whole(1, largest)
    .default(10_000)
    .describe(
      'Runs of agents that are remembered with their transcripts, the newest. So many scheduled ones too.',
    ),
  tasks: whole(1, largest)
    .default(10_000)
    .describe('Tasks that are over and still remembered, those that ran or were made last.'),
  usageDays: whole(1, 36_500)
    .default(800)
    .describe('Days for which it is remembered what each group has used of the model, up to the last one.'),
  audit: whole(1, largest)
    .default(1_000_000)
    .describe('Entries of the audit log that are kept, the newest. The chain stays verifiable.'),
  auditDays: whole(1, 36_500)
    .optional()
    .describe('Entries of the audit log that are older are not kept, however few there are.')
    .meta({ otherwise: 'any age' }),
})

const trustLabel = z.enum(['yes', 'no', 'forbidden']).optional()
const trustLabels = z.strictObject({
  public_source: trustLabel,
  secret_data: trustLabel,
  public_sink: trustLabel,
  dangerous_writes: trustLabel,
})

const services = z.strictObject({
  plugins: z
    .array(z.string().min(1))
    .default([])
    .describe('Files with services of your own; see docs/services.md. Relative to the configuration file.')
    .meta({ allowed: 'a list of paths', otherwise: 'none' }),
  questionMs: whole(1000, day)
    .default(600_000)
    .describe('How long people may take to answer what an agent asks them.'),
  unreadMs: whole(1000, 30 * day)
    .default(3_600_000)
    .describe('After this long an answer that no container has taken is removed.'),
})

const guard = z.strictObject({
  enabled: z
    .enum(['yes', 'no'])
    .default('yes')
    .describe('Whether what agents do is judged by what they have read; see docs/security.md.'),
  approvalMs: whole(1000, day)
    .default(300_000)
    .describe('How long a person may take to decide. After that the answer is no.'),
  labels: z
    .record(z.string(), trustLabels)
    .default({})
    .describe('Trust labels of single tools, which can only make them stricter. Not in the environment.')
    .meta({ allowed: 'an object of labels by tool', otherwise: 'none' }),
})

const notRoot = 'a whole number from 1 to 4294967294 (0 is root, and agents never run as root)'

const container = z.strictObject({
  uid: whole(1, 4_294_967_294)
    .optional()
    .describe(
      'One user for the agents of all groups, to whom their directories and answers are given. Only a daemon that is root can.',
    )
    .meta({ allowed: notRoot, otherwise: 'a user for each group; 1000 where `agents.enabled` is `no`' }),
  gid: whole(1, 4_294_967_294)
    .optional()
    .describe('The group the agents run as.')
    .meta({ allowed: notRoot, otherwise: 'the same number as the user' }),
})

const agents = z.strictObject({
  enabled: z
    .enum(['yes', 'no'])
    .default('yes')
    .describe('Whether agents are started. `no`: only the hatch, for a host that starts them itself.'),
  assistant: z
    .string()
    .min(1)
    .max(64)
    .default('Hatch')
    .describe('The name agents go by, and are called by where a group has no trigger of its own.')
    .meta({ allowed: 'a name of 1 to 64 characters' }),
  driver: z
    .enum(driverNames)
    .default('concierge')
    .describe('Who answers: the built-in concierge, Claude, or a command-line agent.'),
  command: z
    .array(z.string())
    .optional()
    .describe('For the driver `command`: the program and its arguments.')
    .meta({ allowed: 'a list of texts', otherwise: 'none' }),
  sandbox: z
    .enum(sandboxNames)
    .default('auto')
    .describe('What agents run in. `auto`: the safest this machine has. `process` isolates nothing.'),
  image: z
    .string()
    .min(1)
    .optional()
    .describe('The container image for docker and podman.')
    .meta({ allowed: 'the name of an image', otherwise: 'one made of the host’s own files' }),
  atOnce: whole(1, 1000).default(4).describe('Sessions that may run at the same time.'),
  idleMs: whole(0, day)
    .default(60_000)
    .describe('How long a session without work stays, to answer a follow-up at once.'),
  runMs: whole(1000, day)
    .default(1_800_000)
    .describe(
      'How long a session may work on one turn before it is ended. While a person is asked, it does not count.',
    ),
  progressMs: whole(0, day)
    .default(8000)
    .describe(
      'After how long a chat app shows that an agent is at work, in a message that the answer replaces. 0: never.',
    ),
  closeMs: whole(100, 600_000)
    .default(10_000)
    .describe('How long a session that was asked to finish may take before it is ended.'),
  memoryMb: whole(64, 1_048_576).default(2048).describe('Memory of one sandbox.'),
  processes: whole(8, 65_536).default(256).describe('Processes and threads of one sandbox.'),
  cpus: whole(1, 1024).default(2).describe('Processors of one sandbox.'),
  temporaryMb: whole(1, 1_048_576).default(512).describe('Space for temporary files in one sandbox.'),
  missed: z
    .enum(['once', 'skip'])
    .default('once')
    .describe('Scheduled runs whose time passed while the host was down: caught up with once, or left out.'),
})

const model = z.strictObject({
  url: z
    .url({ protocol: /^https?$/ })
    .default('https://api.anthropic.com')
    .describe('The model API that requests from sandboxes are forwarded to.')
    .meta({ allowed: 'an http or https address' }),
  keyVariable: z
    .string()
    .min(1)
    .default('ANTHROPIC_API_KEY')
    .describe('The variable of the host’s environment that holds the key. No sandbox sees it.')
    .meta({ allowed: 'the name of a variable' }),
})

const mount = z.strictObject({
  from: z.string().min(1),
  to: z.string().min(1),
  writable: z.boolean().default(false),
})

/** A plugin as a configuration names it. What else it has is the plugin interface's matter. */
export interface GivenPlugin {
  name: string
  version: string
  settings: z.ZodType
  groupSettings?: z.ZodType
  input: unknown
}

const isGivenPlugin = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  'name' in value &&
  typeof value.name === 'string' &&
  /^[a-z][a-z0-9-]{0,31}$/.test(value.name) &&
  'version' in value &&
  typeof value.version === 'string' &&
  'settings' in value &&
  'load' in value &&
  typeof value.load === 'function'

/** For single groups, by folder. Only in the file. Plugins have settings under their names: `groups.family.telegram`. */
const groupSettings = z
  .object({
    driver: z.enum(driverNames).optional(),
    command: z.array(z.string()).optional(),
    sandbox: z.enum(sandboxNames).optional(),
    image: z.string().min(1).optional(),
    instructions: z.string().optional(),
    mounts: z.array(mount).optional(),
    repo: groupRepoSchema.optional(),
    /** whether what is in its folder must not get out */
    containsSecrets: z.boolean().optional(),
    /** who may decide what its agent is not to do without a person; left out: the operator */
    approvers: z.array(z.string()).optional(),
    /** the chat of another group in which people are asked; left out: the group's own */
    approvalChat: z.string().min(1).optional(),
    /** who may call the agent; left out: everybody in the chat; empty: nobody */
    senders: z.array(z.string()).optional(),
  })
  .catchall(z.unknown())

/** What `groups.<folder>` may have without any plugin. */
export const groupSettingNames: readonly string[] = Object.keys(groupSettings.shape)

export const configSchema = z.strictObject({
  data: z
    .string()
    .min(1)
    .default('data')
    .describe(
      'The data directory. In the file, relative to the file; in the environment and on the command line, to the current directory.',
    )
    .meta({ allowed: 'a path' }),
  durability: z
    .enum(['full', 'process'])
    .default('full')
    .describe('What an accepted command survives: `full` a power loss, `process` a killed daemon.'),
  timezone: z
    .string()
    .refine(isTimeZone)
    .default(machineTimeZone)
    .describe('The zone of times and cron expressions that name none.')
    .meta({ allowed: 'an IANA time zone such as Europe/Lisbon', otherwise: 'the machine’s own' }),
  events: z
    .enum(['auto', 'off'])
    .default('auto')
    .describe('`auto` uses file events wherever a probe shows that they arrive, `off` polls everywhere.'),
  sweepMs: whole(1000, day)
    .default(60_000)
    .describe('How often each directory is listed although no event came.'),
  pollMinMs: whole(1, 60_000)
    .default(5)
    .describe('Without events: the pause between two looks while a group is busy.'),
  pollMaxMs: whole(10, 3_600_000)
    .default(1000)
    .describe('Without events: the pause between two looks that an idle group backs off to.'),
  graceMs: whole(0, 600_000)
    .default(2000)
    .describe('How long a file that is not whole yet may take to become so, for writers that do not rename.'),
  spinMs: whole(0, 1000)
    .default(10)
    .describe(
      'While files come less than this apart, the daemon stays awake between them: several times as fast, for a busy core. 0: it always sleeps.',
    ),
  limits: limits.prefault({}),
  keep: keep.prefault({}),
  container: container.prefault({}),
  agents: agents.prefault({}),
  model: model.prefault({}),
  web: webSchema.prefault({}),
  webhook: webhookSchema.prefault({}),
  services: services.prefault({}),
  guard: guard.prefault({}),
  inspector: inspectorSchema.prefault({}),
  memory: memorySchema.prefault({}),
  hostJobs: hostJobsSchema.prefault({}),
  deploy: deploySchema.prefault({}),
  repos: reposSchema,
  calendars: calendarsSchema,
  mcp: lentServersSchema,
  plugins: z
    .array(z.custom<GivenPlugin>(isGivenPlugin, 'must be a plugin, such as telegram({ … })'))
    .default([])
    .describe('Plugins that are not part of Hatchway, each with its settings; see docs/extending.md.')
    .meta({ allowed: 'a list of plugins', otherwise: 'none' }),
  groups: z
    .record(z.string(), groupSettings)
    .default({})
    .describe('Settings of single groups by their folder; see below. Not in the environment.')
    .meta({ allowed: 'an object of folders', otherwise: 'none' }),
  mountsAllowed: z
    .string()
    .min(1)
    .optional()
    .describe(
      'A file that lists the directories which may be mounted into sandboxes, one a line. Outside the project.',
    )
    .meta({ allowed: 'a path', otherwise: 'no other mounts' }),
  logLevel: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('The least important kind of line the daemon writes to its log.'),
})

export type Config = z.infer<typeof configSchema>

/** What the settings of the plugins that ship with Hatchway contradict: a setting, and a sentence that it begins. */
export const builtInProblems = ({ repos, groups }: Config): { setting: string; problem: string }[] =>
  unknownRepos(repos, groups)
export type ConfigInput = z.input<typeof configSchema>
