import { z } from 'zod'
import type { Refusal } from './errors.ts'
import { folderSchema, jidSchema, requestIdSchema, taskIdSchema, toolNameSchema } from './identifiers.ts'
import { contextModes } from './names.ts'
import { brokenRule, fieldRefusal } from './refusal-text.ts'

/**
 * The canonical commands: what an agent can ask of its host, whatever dialect it spoke. Each schema names every
 * field there is, and a payload with any other field is refused: an agent whose misspelt field was dropped without a
 * word would believe that it counted. Other dialects are read field by field, so what they write beside those never
 * gets here.
 */
const text = (max: number) =>
  z.string().min(1, 'must not be empty').max(max, `must be at most ${max} characters`)

export const scheduleTypeSchema = z.enum(['cron', 'interval', 'once'])
export const contextModeSchema = z.enum(contextModes)

const sendMessage = z.strictObject({
  jid: jidSchema.optional().describe('the chat; left out: the own chat'),
  text: text(1_000_000),
  sender: z.string().min(1).max(128).optional().describe('name of the part of the agent that speaks'),
  speech: z
    .strictObject({ text: text(1_000_000), title: z.string().max(256).optional() })
    .optional()
    .describe('what to say aloud with the message'),
  attachments: z
    .array(
      z.strictObject({
        path: text(4096).describe('of a file in the group’s folder; relative to it, or as the agent sees it'),
        name: z
          .string()
          .min(1)
          .max(255)
          .optional()
          .describe('what people see; left out: the file’s own name'),
      }),
    )
    .min(1)
    .max(10)
    .optional()
    .describe('files that go along'),
  reply_to: z
    .string()
    .min(1)
    .max(256)
    .optional()
    .describe('the `id` of an input of the same chat: apps that can show it as quoted'),
})

const react = z.strictObject({
  jid: jidSchema.optional().describe('the chat; left out: the own chat'),
  emoji: z.string().min(1).max(64),
  message_id: z
    .string()
    .min(1)
    .max(256)
    .optional()
    .describe('the message to react to; left out: the last one'),
})

const scheduleTask = z
  .strictObject({
    task_id: taskIdSchema.optional().describe('an id of the caller’s choice, refused if it is taken'),
    prompt: text(200_000),
    schedule_type: scheduleTypeSchema,
    schedule_value: text(256).describe(
      'a cron expression; whole milliseconds; or a time such as `2030-01-31T09:30:00Z`, in the task’s zone if it names no offset',
    ),
    timezone: z
      .string()
      .min(1)
      .max(64)
      .optional()
      .describe('IANA name; left out: the group’s zone, or the host’s'),
    context_mode: contextModeSchema
      .default('group')
      .describe('with the group’s conversation, or in a fresh session'),
    jid: jidSchema.optional().describe('the chat whose group runs the task; left out: the own group'),
    group: folderSchema.optional().describe('the folder of the group that runs the task, instead of jid'),
    script: z
      .string()
      .max(200_000)
      .optional()
      .describe('a command that runs first and decides whether the agent is woken'),
    model: z.string().min(1).max(128).optional(),
  })
  .refine(task => task.jid === undefined || task.group === undefined, {
    path: ['group'],
    error: 'must not stand beside a chat',
  })

const updateTask = z.strictObject({
  task_id: taskIdSchema,
  prompt: text(200_000).optional(),
  schedule_type: scheduleTypeSchema.optional(),
  schedule_value: text(256).optional(),
  timezone: z.string().min(1).max(64).optional(),
  context_mode: contextModeSchema.optional(),
  script: z.string().max(200_000).optional().describe('an empty string removes it'),
  model: z.string().max(128).optional().describe('an empty string removes it'),
  status: z.enum(['active', 'paused', 'cancelled']).optional(),
})

const taskReference = z.strictObject({ task_id: taskIdSchema })

const registerGroup = z.strictObject({
  jid: jidSchema,
  name: text(256),
  folder: folderSchema,
  trigger: z.string().min(1).max(128).optional().describe('the word that calls the agent'),
  requires_trigger: z.boolean().optional().describe('whether it has to be called'),
  channel: z.string().min(1).max(64).optional(),
  mounts_requested: z
    .boolean()
    .optional()
    .describe('the file asked for mounts, which only the configuration can give'),
})

const unregisterGroup = z.strictObject({ jid: jidSchema })

const nothing = z.strictObject({})

const scheduleHostJob = z.strictObject({
  name: text(128),
  command: text(10_000),
  schedule_type: scheduleTypeSchema,
  schedule_value: text(256),
  timezone: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe('IANA name; left out: the group’s zone, or the host’s'),
  cwd: z.string().max(4096).optional().describe('one of the directories that the configuration allows'),
  user: z.string().min(1).max(64).optional().describe('one of the users that the configuration allows'),
  timeout_seconds: z.number().int().min(1).max(86_400).default(600),
})

const createPeriodicAgent = z.strictObject({
  name: text(128),
  schedule: text(256).describe('a cron expression'),
  prompt: text(200_000),
  context_mode: contextModeSchema.optional(),
  instructions: z.string().max(200_000).optional().describe('what the agent is told about its work'),
  jid: jidSchema.optional().describe('the chat it reports to'),
})

const deploy = z.strictObject({
  rebuild: z.boolean().default(false),
  resume_prompt: z.string().max(200_000).optional(),
  head: z.string().max(128).optional(),
  session_id: z.string().max(256).optional(),
})

const resetContext = z.strictObject({ message: z.string().max(200_000).optional() })

const callService = z.strictObject({
  tool: toolNameSchema,
  arguments: z.record(z.string(), z.unknown()),
})

const askUser = z.strictObject({
  questions: z
    .array(
      z.strictObject({
        question: text(4000),
        options: z
          .array(z.strictObject({ label: text(256), description: z.string().max(2000).optional() }))
          .max(20)
          .optional(),
      }),
    )
    .min(1)
    .max(4),
})

const cancelRequest = z.strictObject({
  request_id: requestIdSchema.describe('of a request of the own group that is not answered yet'),
  unless_begun: z
    .boolean()
    .optional()
    .describe('only while it waits for a person; what the host has begun with is done'),
})

const checkShell = z.strictObject({ command: text(200_000) })

export const payloads = {
  send_message: sendMessage.describe('says something in a chat'),
  react: react.describe('puts an emoji on a message'),
  schedule_task: scheduleTask.describe('has the agent woken with a prompt, later or again and again'),
  update_task: updateTask.describe(
    'changes the fields of a task that are given; the next run is computed again',
  ),
  pause_task: taskReference.describe('stops a task until it is resumed'),
  resume_task: taskReference.describe('lets a paused task run again'),
  cancel_task: taskReference.describe('ends a task for good; its history is kept'),
  register_group: registerGroup.describe('gives a chat an agent and a directory of its own'),
  unregister_group: unregisterGroup.describe('ends a group; its tasks are cancelled, its files kept'),
  refresh_groups: nothing.describe('has the list of groups written anew'),
  show_withheld: nothing.describe('has the lists written with what they left out, which then counts as read'),
  schedule_host_job: scheduleHostJob.describe('has a shell command run on the host'),
  create_periodic_agent: createPeriodicAgent.describe('makes a group and a task that wakes its agent'),
  deploy: deploy.describe('has the host restarted with the code as it is now'),
  reset_context: resetContext.describe('ends the session; the next one begins with the message'),
  finished_work: nothing.describe('says that a scheduled run is done'),
  sync_worktree: nothing.describe('merges the commits of the group’s worktree'),
  call_service: callService.describe('has a service of the host do something'),
  ask_user: askUser.describe('asks the people in the chat, and waits'),
  cancel_request: cancelRequest.describe('takes a request to a service or to people back'),
  check_shell: checkShell.describe('asks whether a shell command may run'),
} as const

export type CommandType = keyof typeof payloads
export type Payload<T extends CommandType> = z.infer<(typeof payloads)[T]>
export type Command = { [T in CommandType]: { type: T; payload: Payload<T> } }[CommandType]

const command = <T extends CommandType>(type: T) =>
  z.strictObject({ type: z.literal(type), payload: payloads[type] })

export const commandSchema = z.discriminatedUnion('type', [
  command('send_message'),
  command('react'),
  command('schedule_task'),
  command('update_task'),
  command('pause_task'),
  command('resume_task'),
  command('cancel_task'),
  command('register_group'),
  command('unregister_group'),
  command('refresh_groups'),
  command('show_withheld'),
  command('schedule_host_job'),
  command('create_periodic_agent'),
  command('deploy'),
  command('reset_context'),
  command('finished_work'),
  command('sync_worktree'),
  command('call_service'),
  command('ask_user'),
  command('cancel_request'),
  command('check_shell'),
])

/** Made with the first command: whoever only imports the schemas need not wait for it. */
let compiled: typeof commandSchema | undefined

/**
 * The one way into a canonical command. `nameOf` tells under which name the writer knows a field, so that a
 * refusal speaks of the file as it was written.
 */
export const commandFrom = (
  type: CommandType,
  payload: unknown,
  nameOf: (path: readonly PropertyKey[]) => string,
): Command | Refusal => {
  compiled ??= z.compile(commandSchema)
  const result = compiled.safeParse({ type, payload }, { error: brokenRule })
  return result.success ? result.data : fieldRefusal(result.error.issues, path => nameOf(path.slice(1)))
}

/** The same for a plugin's command, whose schema the host knows. */
export const payloadFrom = <P>(
  schema: z.ZodType<P>,
  payload: unknown,
): { ok: true; payload: P } | { ok: false; error: Refusal } => {
  const result = schema.safeParse(payload, { error: brokenRule })
  if (result.success) return { ok: true, payload: result.data }
  const error = fieldRefusal(result.error.issues, path => ['payload', ...path].map(String).join('.'))
  return { ok: false, error }
}

/** A command that a plugin adds. Its name has a dot, and only the host that has the plugin knows what its payload may be. */
const pluginTypePattern = /^[a-z][a-z0-9-]{0,31}\.[a-z][a-z0-9_]{0,31}$/
export const pluginCommandSchema = z.strictObject({
  type: z.string().regex(pluginTypePattern, 'must be a plugin’s name, a dot and a command’s name'),
  payload: z.record(z.string(), z.unknown()),
})
export type PluginCommand = z.infer<typeof pluginCommandSchema>
export type AnyCommand = Command | PluginCommand
/** For commands that are read back from where they were stored. */
export const anyCommandSchema = z.union([commandSchema, pluginCommandSchema])
export const isPluginType = (type: unknown): boolean =>
  typeof type === 'string' && pluginTypePattern.test(type)

export const commandTypes = Object.keys(payloads) as CommandType[]
/** Whether it is one of the protocol's own, and not a plugin's. */
export const isCommand = (command: AnyCommand): command is Command => isCommandType(command.type)
export const isCommandType = (type: string): type is CommandType => Object.hasOwn(payloads, type)
