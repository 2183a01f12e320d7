import { z } from 'zod'
import { folderSchema, jidSchema, taskIdSchema } from './identifiers.ts'
import { driverNames } from './names.ts'

/**
 * How the host and the runner in the sandbox talk about one run, beside the hatch: the host writes one JSON document to
 * the runner's standard input and closes it; the runner writes events to its standard output, each a JSON text after a
 * record separator (RFC 7464), so that whatever else prints there is told apart. Nothing in an event gives a right: the
 * host knows which run's process it reads from.
 */
export const recordSeparator = '\u001e'

export const runInputSchema = z.object({
  /** as the host counts it; follow-ups carry it as the name of their file */
  id: z.string().min(1).max(128),
  text: z.string(),
  sender: z.string(),
  sender_name: z.string(),
  timestamp: z.iso.datetime(),
  timezone: z.string().optional().describe('where the writer is, if by another clock than the run’s'),
})
export type RunInput = z.infer<typeof runInputSchema>

export const runStartSchema = z.object({
  version: z.literal(1),
  run_id: z.string().min(1).max(128),
  kind: z.enum(['chat', 'task']),
  group: z.object({ folder: folderSchema, name: z.string(), jid: jidSchema, main: z.boolean() }),
  assistant: z.string().describe('the name the agent goes by'),
  timezone: z.string(),
  session_id: z.string().nullable().describe('the agent’s session to go on with'),
  model: z.string().nullable(),
  model_api: z
    .enum(['messages', 'responses', 'completions', 'generate'])
    .optional()
    .describe('the API it is asked by; left out: the agent’s usual one'),
  model_context: z.int().min(1).optional().describe('how many tokens the model can hold'),
  task: z
    .object({ id: taskIdSchema, occurrence_id: z.string(), script: z.string().nullable() })
    .nullable()
    .describe('for a scheduled run'),
  inputs: z.array(runInputSchema).min(1).describe('what the run begins with; a task’s prompt is one input'),
  context: z.array(runInputSchema).describe('said in the chat without calling the agent, oldest first'),
  notices: z.array(z.string()).optional().describe('what the host itself has to say, before all of it'),
  repository: z.string().optional().describe('the name of the repository that it has a worktree of'),
  driver: z.object({
    name: z.enum(driverNames),
    command: z
      .array(z.string())
      .optional()
      .describe('for `acp` and `command`: the program and its arguments'),
    instructions: z.string().optional().describe('added to what the agent is told about itself'),
  }),
  events: z.enum(['auto', 'off']).describe('how `input/` is watched'),
})
export type RunStart = z.infer<typeof runStartSchema>

const steps = ['text', 'thinking', 'tool_call', 'tool_result', 'notice'] as const

export const runEventSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('ready') }),
  z.object({ type: z.literal('heartbeat') }),
  z
    .object({ type: z.literal('session'), session_id: z.string() })
    .describe('the session that this run goes on with or begins, said before its first turn ends'),
  z.object({ type: z.literal('used'), inputs: z.array(z.string()) }).describe('these reached the agent'),
  z.object({
    type: z.literal('script'),
    wake: z.boolean(),
    data: z.unknown().optional(),
    error: z.string().optional(),
  }),
  z.object({
    type: z.literal('step'),
    kind: z.enum(steps),
    name: z.string().optional().describe('of the tool'),
    text: z.string(),
  }),
  z
    .object({ type: z.literal('delta'), text: z.string() })
    .describe('the next words of what the agent is saying, for people who look on; never an answer itself'),
  z
    .object({ type: z.literal('message'), text: z.string() })
    .describe('said in the chat in the middle of a turn'),
  z
    .object({
      type: z.literal('result'),
      text: z.string().nullable().describe('what to say in the chat; null: nothing'),
      session_id: z.string().nullable(),
    })
    .describe('a turn has ended; what was used so far is answered by it'),
  z.object({ type: z.literal('error'), message: z.string(), session_id: z.string().nullable() }),
])
export type RunEvent = z.infer<typeof runEventSchema>

export const runStepKinds: readonly (typeof steps)[number][] = steps
