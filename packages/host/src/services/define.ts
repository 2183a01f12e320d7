import type { ErrorCode, JsonSchema } from '@hatchway/protocol'
import type { Logger } from 'pino'
import { z } from 'zod'
import type { Allowed, Checked, LaterTool, Service, ServiceContext } from '../commands/service-tools.ts'
import type { Dataset } from '../guard/guard.ts'
import type { TrustLabels } from '../guard/labels.ts'

export const defaultTimeoutMs = 120_000
export const defaultAnswerBytes = 1_048_576

/** Says no, with a code of the protocol and words for the agent. */
export class ServiceRefusal extends Error {
  override name = 'ServiceRefusal'
  readonly code: ErrorCode
  constructor(code: ErrorCode, message: string) {
    super(message)
    this.code = code
  }
}

interface ToolDefinition<Input extends z.ZodObject> {
  title?: string
  /** what it does and when to use it, for the agent that chooses */
  description: string
  input: Input
  /** what it answers */
  output?: z.ZodObject
  /** asked again after a restart in the middle; left out: that request is answered with `interrupted` */
  repeatable?: boolean
  timeoutMs?: number
  answerBytes?: number
  /** left out: all groups */
  groups?: Allowed
  labels?: TrustLabels
  annotations?: LaterTool['annotations']
  /** stored data that it reads or writes: what a tainted agent has written taints who reads it */
  dataset?: Dataset
  /** @deprecated the former name of `dataset`; goes with the next version */
  shelf?: { name: string; does: 'put' | 'take' }
  call(input: z.output<Input>, context: ServiceContext): Promise<object> | object
}

export interface ServiceDefinition<Inputs extends Record<string, z.ZodObject>> {
  name: string
  tools: { [Name in keyof Inputs]: ToolDefinition<Inputs[Name]> }
  start?(context: { changed(): void; log: Logger }): Promise<void>
  stop?(): Promise<void>
  state?(): { ok: boolean; text: string }
}

/** A service of your own: named tools with a schema each, and what they do. */
export function defineService<Inputs extends Record<string, z.ZodObject>>(
  definition: ServiceDefinition<Inputs>,
): Service {
  const { name, tools: defined, ...rest } = definition
  const tools = Object.entries(defined).map(([tool, about]) => toolFrom(name, tool, about))
  return { name, tools: () => tools, ...rest }
}

function toolFrom<Input extends z.ZodObject>(
  service: string,
  name: string,
  definition: ToolDefinition<Input>,
): LaterTool {
  const { title, description, input, output, call } = definition
  const dataset = definition.dataset ?? datasetOf(name, definition.shelf)
  return {
    kind: 'later',
    name,
    service,
    title: title ?? titleOf(name),
    description,
    inputSchema: schemaOf(input),
    ...(output ? { outputSchema: schemaOf(output, 'output') } : {}),
    annotations: definition.annotations ?? {},
    answers: 'facts',
    groups: definition.groups ?? 'all',
    labels: definition.labels ?? {},
    ...(dataset ? { dataset } : {}),
    repeatable: definition.repeatable ?? false,
    timeoutMs: definition.timeoutMs ?? defaultTimeoutMs,
    answerBytes: definition.answerBytes ?? defaultAnswerBytes,
    check: value => checkedBy(input, value),
    call: (value, context) => call(input.parse(value), context),
  }
}

function datasetOf(tool: string, shelf: { name: string; does: 'put' | 'take' } | undefined) {
  if (!shelf) return undefined
  const dataset: Dataset = { name: shelf.name, access: shelf.does === 'put' ? 'write' : 'read' }
  process.emitWarning(
    `The tool ${tool} says \`shelf\`, which is called \`dataset\` now. Write dataset: ${JSON.stringify(dataset)}.`,
    'DeprecationWarning',
  )
  return dataset
}

export const schemaOf = (schema: z.ZodType, io: 'input' | 'output' = 'input'): JsonSchema =>
  z.toJSONSchema(schema, { io })

/** One sentence that names each field that is wrong, and quotes none. */
export function checkedBy(schema: z.ZodType, value: unknown): Checked {
  const parsed = schema.safeParse(value)
  if (parsed.success) return { ok: true, input: value }
  const problems = parsed.error.issues.map(({ path, message }) =>
    path.length === 0 ? message : `${path.map(String).join('.')}: ${message}`,
  )
  return { ok: false, message: problems.join('; ') }
}

const titleOf = (name: string): string => {
  const words = name.replaceAll(/[_.:-]+/g, ' ').trim()
  return words.charAt(0).toUpperCase() + words.slice(1)
}
