import { z } from 'zod'
import type { TrustLabels } from '../../guard/labels.ts'
import type { MemoryLimits } from './database/types.ts'

/** What agents are told of the tools for their group's memories. */

const longestKey = 256
const longestCategory = 64
/** What Pynchy's containers tell their agents it is. */
export const defaultCategory = 'core'
export const mostRecalled = 50
const mostListed = 500
/** One memory is always given whole, and as JSON each of its bytes can be six. */
const largestAnswer = 2_097_152

const memory = z.object({
  key: z.string(),
  content: z.string(),
  category: z.string(),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime().describe('when it was last saved'),
})

/**
 * What is recalled was written by the group's own agents and brings in no stranger by itself. It may hold what people
 * told them in confidence, so it counts as secret.
 */
const reading: TrustLabels = {
  public_source: 'no',
  secret_data: 'yes',
  public_sink: 'no',
  dangerous_writes: 'no',
}
/** Answers hold only what was asked; what is changed are the group's own notes, which nobody else reads. */
const writing: TrustLabels = {
  public_source: 'no',
  secret_data: 'no',
  public_sink: 'no',
  dangerous_writes: 'no',
}

const key = z
  .string()
  .trim()
  .min(1)
  .max(longestKey)
  .transform(text => text.normalize('NFC'))
const category = z.string().trim().max(longestCategory)
/** An empty one means none. */
const onlyOf = category
  .optional()
  .describe('Only memories of this category; upper and lower case are the same. Left out: all.')

export const saveMemory = ({ contentBytes }: Pick<MemoryLimits, 'contentBytes'>) => ({
  description:
    'Keeps something for later conversations: a fact, a preference, a decision, how something is done. A memory has a key of its own; saving under a key that exists replaces what was there. Write the content so that it can be understood without this conversation, with names and dates instead of "he" or "tomorrow", because it is found again by its words.',
  input: z.object({
    key: key.describe(
      'A short name that says what it is about, such as "anna-birthday" or "deploy-steps". Use the key it has if you correct something you saved before.',
    ),
    content: z
      .string()
      .min(1)
      .refine(text => Buffer.byteLength(text) <= contentBytes, {
        error: `is larger than ${contentBytes} bytes. Save the essence, or several memories with keys of their own`,
      })
      .describe(`What to remember, at most ${contentBytes} bytes.`),
    category: category
      .default(defaultCategory)
      .describe('A word to sort memories by, such as "people", "preferences" or "daily".'),
  }),
  output: memory.omit({ content: true }).extend({
    replaced: z.boolean().describe('whether there was a memory under this key'),
  }),
  repeatable: true,
  labels: writing,
  dataset: { name: 'memory', access: 'write' as const },
  annotations: {
    readOnlyHint: false,
    destructiveHint: true,
    idempotentHint: true,
    openWorldHint: false,
  },
})

export const recallMemories = {
  description:
    'Finds what was saved in earlier conversations, the best match first. Look here before you ask a person for something they may have told you already. Give the words that the memory is likely to contain, in the language it was saved in; a memory need not have all of them, and words inside longer words are found, too. Without any word in the query the newest are given.',
  input: z.object({
    query: z
      .string()
      .max(4096)
      .describe('Words to look for, such as "anna birthday". Every character is taken as text.'),
    category: onlyOf,
    limit: z
      .int()
      .min(1)
      .max(1000)
      .default(5)
      .describe(`How many to give at most; never more than ${mostRecalled}.`),
  }),
  output: z.object({
    memories: z.array(memory),
    more: z.boolean().describe('whether others match as well: raise the limit, or ask more precisely'),
  }),
  repeatable: true,
  labels: reading,
  dataset: { name: 'memory', access: 'read' as const },
  answerBytes: largestAnswer,
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
}

export const forgetMemory = {
  description:
    'Removes one memory for good, by its key. Use it for what is no longer true and has nothing in its place, or when a person asks you to forget something.',
  input: z.object({ key: key.describe('Its key, as recall_memories or list_memories give it.') }),
  output: z.object({
    key: z.string(),
    forgotten: z.boolean().describe('false: there was no memory under this key'),
  }),
  repeatable: true,
  labels: writing,
  annotations: {
    readOnlyHint: false,
    destructiveHint: true,
    idempotentHint: true,
    openWorldHint: false,
  },
}

export const listMemories = {
  description:
    'Lists memories, those saved last first. To find something, recall_memories is better: this is for an overview, or to tidy up.',
  input: z.object({
    category: onlyOf,
    limit: z
      .int()
      .min(1)
      .max(mostListed)
      .default(100)
      .describe('How many to give at most. Fewer are given if they are long.'),
    offset: z
      .int()
      .min(0)
      .max(1_000_000_000)
      .default(0)
      .describe('So many of the newest are left out, to see those after them.'),
  }),
  output: z.object({
    memories: z.array(memory),
    more: z.boolean().describe('whether there are others after these: ask again with a larger offset'),
    total: z.int().describe('how many there are, of the category if one was given'),
  }),
  repeatable: true,
  labels: reading,
  dataset: { name: 'memory', access: 'read' as const },
  answerBytes: largestAnswer,
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
}
