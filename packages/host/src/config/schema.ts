import { z } from 'zod'

/**
 * Every value that can be configured, with what it means and what it may be. The environment names, the messages
 * about wrong values and the table in docs/configuration.md all come from here.
 */
const whole = (from: number, to: number) => z.int().min(from).max(to)

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

const machineTimeZone = () => {
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
    .describe('Commands of one group handled in a minute. Over it, the files of that group wait.'),
  filesWaiting: whole(1, largest)
    .default(50_000)
    .describe('Files of one group that may wait. Over it, the newest are refused and counted in one entry.'),
  openTasks: whole(1, 1_000_000)
    .default(1000)
    .describe('Active and paused tasks of one group. Over it, a new one is refused with `quota_exceeded`.'),
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
})

const container = z.strictObject({
  uid: whole(0, 4_294_967_294)
    .optional()
    .describe(
      'The user the agents run as; their directories and answers are given to it. Only a daemon that is root can.',
    )
    .meta({ otherwise: '1000' }),
  gid: whole(0, 4_294_967_294)
    .optional()
    .describe('The group the agents run as.')
    .meta({ otherwise: 'the same as `container.uid`' }),
})

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
  logLevel: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('The least important kind of line the daemon writes to its log.'),
})

export type Config = z.infer<typeof configSchema>
export type ConfigInput = z.input<typeof configSchema>
