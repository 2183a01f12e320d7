import { z } from 'zod'
import { type CommandType, commandSchema, payloads } from './commands.ts'
import { envelopeSchema } from './envelope.ts'
import { receiptSchema } from './receipts.ts'
import { progressSchema, servicesSchema, todoSchema } from './services.ts'
import { groupSchema, taskSchema } from './snapshots.ts'

export type JsonSchema = z.core.JSONSchema.JSONSchema

// what a writer may write: a field with a default may be left out
const jsonSchema = (schema: z.ZodType): JsonSchema => z.toJSONSchema(schema, { io: 'input' })

const titled = (title: string, schema: z.ZodType): JsonSchema => ({ title, ...jsonSchema(schema) })

/** The schemas as JSON Schema, for people and for other languages. */
export const jsonSchemas = (): Record<string, JsonSchema> => ({
  commands: titled('A command, in any dialect once it is translated', commandSchema),
  envelope: titled('A file that an agent writes, version 1', envelopeSchema),
  receipt: titled('The answer to a version 1 file', receiptSchema),
  task: titled('A task in current_tasks.json, version 1', taskSchema),
  services: titled('What services.json tells a group’s agent, version 1', servicesSchema),
  progress: titled('How far a request has come, in responses/{id}.progress.json, version 1', progressSchema),
  todo: titled('An entry of todos.json', todoSchema),
  group: titled('A group in available_groups.json, version 1', groupSchema),
})

export const payloadJsonSchema = (type: CommandType): JsonSchema => jsonSchema(payloads[type])
