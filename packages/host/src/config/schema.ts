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
import { type ModelInput, modelSchema } from './model.ts'
import { driverNames, sandboxNames } from './names.ts'
import { usageLimitsSchema, usageSettingsSchema } from './usage.ts'
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
    .describe('Largest file an agent may post. A larger one is refused with `too_large`.'),
  jsonDepth: whole(1, 1000)
    .default(64)
    .describe(
      'How deep objects and arrays in a file may be nested. A deeper file is refused with `too_deep`.',
    ),
  commandsPerMinute: whole(1, largest)
    .default(60_000)
    .describe(
      'Commands per minute and group; a large file counts once per 4 KiB. Beyond the limit, the group’s files wait.',
    ),
  filesWaiting: whole(1, largest)
    .default(50_000)
    .describe(
      'Waiting files per group. Beyond the limit, the newest are refused, with one error entry that counts them.',
    ),
  openTasks: whole(1, 1_000_000)
    .default(1000)
    .describe(
      'Active and paused tasks per group. Beyond the limit, a new task is refused with `quota_exceeded`.',
    ),
  openTaskBytes: whole(1, largest)
    .default(1_048_576)
    .describe(
      'Total size of the prompts, scripts and commands in a group’s open tasks. Beyond the limit, a new task is refused with `quota_exceeded`.',
    ),
  openRequests: whole(1, 1_000_000)
    .default(1000)
    .describe(
      'Unanswered requests to services and people per group. Beyond the limit, a new request is refused with `quota_exceeded`.',
    ),
  openRequestBytes: whole(1, largest)
    .default(16_777_216)
    .describe(
      'Total size of a group’s unanswered requests. Beyond the limit, a new request is refused with `quota_exceeded`.',
    ),
  openTodos: whole(1, 1_000_000)
    .default(1000)
    .describe('Open todos per group. Beyond the limit, a new one is refused with `quota_exceeded`.'),
  messageBytes: whole(65_536, largest)
    .default(67_108_864)
    .describe(
      'Space per group for messages larger than 1 KiB. Beyond it, the oldest are deleted; at twice the limit, new messages are refused with `quota_exceeded` until that is done.',
    ),
  attachmentBytes: whole(1, 1_073_741_824)
    .default(26_214_400)
    .describe('Largest attachment of a message, in both directions.'),
  errorBytes: whole(0, largest)
    .default(268_435_456)
    .describe(
      'Space per group for refused files in `ipc/errors`. Beyond it, refused files are counted but not kept.',
    ),
})

const keep = z.strictObject({
  commands: whole(1, largest)
    .default(1_000_000)
    .describe(
      'Number of handled commands to keep. A request id that is no longer kept is not recognised as a repeat.',
    ),
  messages: whole(1, largest)
    .default(1_000_000)
    .describe('Number of messages to keep. Messages that are not delivered yet are always kept.'),
  fileBytes: whole(1, largest)
    .default(1_073_741_824)
    .describe('Space per group for copies of attachments in `files`. Beyond it, the oldest are deleted.'),
  runs: whole(1, largest)
    .default(10_000)
    .describe(
      'Number of agent runs to keep, with their transcripts. The history of scheduled runs has the same limit.',
    ),
  tasks: whole(1, largest)
    .default(10_000)
    .describe('Number of finished tasks to keep. The most recently run or created stay.'),
  usageDays: whole(1, 36_500).default(800).describe('Number of days to keep each group’s model usage.'),
  audit: whole(1, largest)
    .default(1_000_000)
    .describe('Number of audit log entries to keep. The hash chain stays verifiable.'),
  auditDays: whole(1, 36_500)
    .optional()
    .describe('Maximum age of audit log entries, in days. Older ones are deleted.')
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
    .describe(
      'Files with your own services; see docs/services.md. Paths are relative to the configuration file.',
    )
    .meta({ allowed: 'a list of paths', otherwise: 'none' }),
  questionMs: whole(1000, day)
    .default(600_000)
    .describe('How long people may take to answer an agent’s question.'),
  unreadMs: whole(1000, 30 * day)
    .default(3_600_000)
    .describe('How long an answer waits for a container to read it, before it is deleted.'),
})

const guard = z.strictObject({
  enabled: z
    .enum(['yes', 'no'])
    .default('yes')
    .describe('Whether the guard checks actions of agents by what they have read; see docs/security.md.'),
  approvalMs: whole(1000, day)
    .default(300_000)
    .describe('How long a person may take to approve an action. After that it is denied.'),
  labels: z
    .record(z.string(), trustLabels)
    .default({})
    .describe('Stricter trust labels for single tools; see docs/security.md. Only in the configuration file.')
    .meta({ allowed: 'an object of labels by tool', otherwise: 'none' }),
})

const notRoot = 'a whole number from 1 to 4294967294 (0 is root, and agents never run as root)'

const container = z.strictObject({
  uid: whole(1, 4_294_967_294)
    .optional()
    .describe(
      'One user for the agents of all groups, who will own their directories and answers. The daemon has to be root.',
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
    .describe(
      'Whether the daemon starts agents. `no`: it only handles files, and you start the containers yourself.',
    ),
  assistant: z
    .string()
    .min(1)
    .max(64)
    .default('Hatch')
    .describe('The agents’ name. It is also the trigger of groups that have none of their own.')
    .meta({ allowed: 'a name of 1 to 64 characters' }),
  driver: z
    .enum(driverNames)
    .default('concierge')
    .describe(
      'The agent that answers: the built-in concierge, the assistant for any model, Claude, an agent that speaks the Agent Client Protocol (`acp`), or any command-line agent.',
    ),
  command: z
    .array(z.string())
    .optional()
    .describe('For the drivers `acp` and `command`: the program and its arguments.')
    .meta({ allowed: 'a list of texts', otherwise: 'none' }),
  sandbox: z
    .enum(sandboxNames)
    .default('auto')
    .describe('What agents run in. `auto`: the safest sandbox on this machine. `process`: no isolation.'),
  image: z
    .string()
    .min(1)
    .optional()
    .describe('The container image for docker and podman.')
    .meta({ allowed: 'the name of an image', otherwise: 'one made of the host’s own files' }),
  atOnce: whole(1, 1000).default(4).describe('Sessions that may run at the same time.'),
  idleMs: whole(0, day)
    .default(60_000)
    .describe('How long an idle session stays open, so that a follow-up is answered at once.'),
  runMs: whole(1000, day)
    .default(1_800_000)
    .describe(
      'How long one turn may take before it is ended. Time spent waiting for a person does not count.',
    ),
  progressMs: whole(0, day)
    .default(8000)
    .describe(
      'After how long a chat app shows that an agent is at work, in a message that the answer replaces. 0: never.',
    ),
  liveText: z
    .enum(['yes', 'no'])
    .default('yes')
    .describe('Whether chats show what an agent is writing before its answer is whole.'),
  closeMs: whole(100, 600_000)
    .default(10_000)
    .describe('How long a session may take to finish when asked to, before it is killed.'),
  memoryMb: whole(64, 1_048_576).default(2048).describe('Memory limit of one sandbox.'),
  processes: whole(8, 65_536)
    .default(256)
    .describe('Maximum number of processes and threads in one sandbox.'),
  cpus: whole(1, 1024).default(2).describe('Number of CPUs one sandbox may use.'),
  temporaryMb: whole(1, 1_048_576).default(512).describe('Space for temporary files in one sandbox.'),
  missed: z
    .enum(['once', 'skip'])
    .default('once')
    .describe(
      'Scheduled runs that were missed while the host was down: `once` runs the task once, `skip` does not run it.',
    ),
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
    /** whom its agent asks; nothing of the setting `model` is added */
    model: modelSchema.optional(),
    /** what its agents may use of models, beside the limits of all groups together */
    limits: usageLimitsSchema.optional(),
    sandbox: z.enum(sandboxNames).optional(),
    image: z.string().min(1).optional(),
    instructions: z.string().optional(),
    liveText: z.enum(['yes', 'no']).optional(),
    /** where its people are: their words and its schedules are meant by this clock */
    timezone: z.string().refine(isTimeZone, 'must be an IANA time zone such as Europe/Lisbon').optional(),
    mounts: z.array(mount).optional(),
    repo: groupRepoSchema.optional(),
    /** whether what is in its folder must not get out */
    containsSecrets: z.boolean().optional(),
    /** who may decide what its agent is not to do without a person, by id or `platform:id`; left out: the operator */
    approvers: z.array(z.string()).optional(),
    /** the chat of another group in which people are asked; left out: the group's own */
    approvalChat: z.string().min(1).optional(),
    /** who may call the agent, by id or `platform:id`; left out: everybody in the chat; empty: nobody */
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
      'The data directory. A path in the configuration file is relative to that file, otherwise to the current directory.',
    )
    .meta({ allowed: 'a path' }),
  durability: z
    .enum(['full', 'process'])
    .default('full')
    .describe(
      'What an accepted command survives: `full`: a power loss, `process`: only a crash of the daemon (faster).',
    ),
  timezone: z
    .string()
    .refine(isTimeZone)
    .default(machineTimeZone)
    .describe('The time zone of schedules that do not name one.')
    .meta({ allowed: 'an IANA time zone such as Europe/Lisbon', otherwise: 'the machine’s own' }),
  events: z
    .enum(['auto', 'off'])
    .default('auto')
    .describe('`auto` uses file events wherever a test shows that they arrive, `off` always polls.'),
  sweepMs: whole(1000, day)
    .default(60_000)
    .describe('How often each directory is scanned even without an event.'),
  pollMinMs: whole(1, 60_000)
    .default(5)
    .describe('Without events: time between two scans while a group is busy.'),
  pollMaxMs: whole(10, 3_600_000)
    .default(1000)
    .describe('Without events: longest time between two scans of an idle group.'),
  graceMs: whole(0, 600_000)
    .default(2000)
    .describe('How long an incomplete file may take to become complete, for writers that do not rename.'),
  spinMs: whole(0, 1000)
    .default(10)
    .describe(
      'How long the daemon busy-waits for the next file after one. Much lower latency under load, at the cost of CPU time. 0: never.',
    ),
  limits: limits.prefault({}),
  keep: keep.prefault({}),
  container: container.prefault({}),
  agents: agents.prefault({}),
  model: modelSchema.prefault({}),
  usage: usageSettingsSchema.prefault({}),
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
    .describe('Your plugins with their settings; see docs/extending.md.')
    .meta({ allowed: 'a list of plugins', otherwise: 'none' }),
  groups: z
    .record(z.string(), groupSettings)
    .default({})
    .describe('Settings of single groups, by folder; see below. Only in the configuration file.')
    .meta({ allowed: 'an object of folders', otherwise: 'none' }),
  mountsAllowed: z
    .string()
    .min(1)
    .optional()
    .describe(
      'A file outside the project that lists the directories which may be mounted into sandboxes, one per line.',
    )
    .meta({ allowed: 'a path', otherwise: 'no other mounts' }),
  logLevel: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('The lowest level that is written to the log.'),
})

export type Config = z.infer<typeof configSchema>

/** What the settings of the plugins that ship with Hatchway contradict: a setting, and a sentence that it begins. */
export const builtInProblems = ({ repos, groups }: Config): { setting: string; problem: string }[] =>
  unknownRepos(repos, groups)
type SchemaInput = z.input<typeof configSchema>
type GroupInput = NonNullable<SchemaInput['groups']>[string]

/** What people write: a model may be a short text. */
export type ConfigInput = Omit<SchemaInput, 'model' | 'groups'> & {
  model?: ModelInput | undefined
  groups?: Record<string, Omit<GroupInput, 'model'> & { model?: ModelInput | undefined }> | undefined
}

type GroupSettings = Config['groups'][string]

/** Folders are told apart without case, and so are they here: what is overlooked would not count. As written comes last. */
export const settingsFor = ({ groups }: Pick<Config, 'groups'>, folder: string): GroupSettings[] =>
  Object.entries(groups)
    .filter(([name]) => name.toLowerCase() === folder.toLowerCase())
    .sort(([one], [other]) => Number(one === folder) - Number(other === folder))
    .map(([, settings]) => settings)

/** All settings of a group, however its folder is written in the configuration. */
export const settingsOf = (config: Pick<Config, 'groups'>, folder: string): GroupSettings =>
  Object.assign({}, ...settingsFor(config, folder))

/** The clock that a group goes by. */
export const zoneOf = (config: Pick<Config, 'groups' | 'timezone'>, folder: string): string =>
  settingsOf(config, folder).timezone ?? config.timezone
