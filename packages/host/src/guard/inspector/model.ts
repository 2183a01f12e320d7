import { parseStrict } from '@hatchway/protocol'
import { z } from 'zod'
import type { Verdict } from '../../base/taint.ts'
import { oneLine } from '../../base/visible-text.ts'
import { findForms } from '../secrets/forms.ts'
import { messageOf, type Prompt } from './prompt.ts'

/**
 * One question to a model through the Messages API. It has to answer with one call of one tool, in exactly the form that
 * was asked for; anything else, and anything that goes wrong on the way, is `unsure`. Reasons for that are ours: what
 * comes back, and what `fetch` throws, can hold anything, the key included.
 */
export interface Model {
  name: string
  url: string
  key: string
}

const tool = {
  name: 'give_verdict',
  description: 'Says what becomes of the document.',
  input_schema: {
    type: 'object',
    properties: {
      verdict: { type: 'string', enum: ['allow', 'deny', 'unsure'] },
      reason: { type: 'string', maxLength: 200, description: 'one short sentence without quotations' },
    },
    required: ['verdict', 'reason'],
    additionalProperties: false,
  },
}

/** asked for are 200; a few more are no reason to ask a person */
const longestReason = 300
const longestAnswer = 65_536

const answerSchema = z.looseObject({
  type: z.literal('message'),
  role: z.literal('assistant'),
  stop_reason: z.literal('tool_use'),
  // One block: a second verdict, or words beside it, are no clear answer.
  content: z.tuple([
    z.looseObject({
      type: z.literal('tool_use'),
      name: z.literal(tool.name),
      input: z.strictObject({
        verdict: z.enum(['allow', 'deny', 'unsure']),
        reason: z.string().trim().min(1).max(longestReason),
      }),
    }),
  ]),
})

/** Rejects with the signal's reason, and for nothing else. */
export async function askModel(model: Model, prompt: Prompt, signal: AbortSignal): Promise<Verdict> {
  const unsure = (reason: string): Verdict => ({ verdict: 'unsure', reason, by: model.name })
  if (model.key === '') return unsure('The model cannot be asked: there is no key for it.')
  let text: string | undefined
  try {
    const response = await fetch(`${model.url.replace(/\/+$/, '')}/v1/messages`, {
      method: 'POST',
      // The key goes to the address that was configured, and to no other.
      redirect: 'error',
      signal,
      headers: {
        'content-type': 'application/json',
        'anthropic-version': '2023-06-01',
        'x-api-key': model.key,
      },
      body: JSON.stringify({
        model: model.name,
        max_tokens: 512,
        system: prompt.system,
        messages: [{ role: 'user', content: messageOf(prompt) }],
        tools: [tool],
        tool_choice: { type: 'tool', name: tool.name, disable_parallel_tool_use: true },
      }),
    })
    if (response.status !== 200) {
      await response.body?.cancel()
      return unsure(`The model could not be asked: its API answered with status ${response.status}.`)
    }
    text = await boundedText(response)
  } catch {
    signal.throwIfAborted()
    return unsure('The model could not be asked: its API cannot be reached.')
  }
  if (text === undefined) return unsure('The model answered with too much.')
  const parsed = parseStrict(text, { depth: 16, mayGrow: false })
  if ('refusal' in parsed) return unsure('The model did not answer with a verdict.')
  const answer = answerSchema.safeParse(parsed.body)
  if (!answer.success) return unsure('The model did not answer with a verdict.')
  const { verdict, reason } = answer.data.content[0].input
  // A person reads it, and it is kept: neither the key nor what was to be kept in belongs there.
  if (reason.includes(model.key) || !findForms(reason, 1).next().done)
    return unsure('The model gave a reason that cannot be shown.')
  return { verdict, reason: oneLine(reason), by: model.name }
}

async function boundedText(response: Response): Promise<string | undefined> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body ?? []) {
    length += chunk.length
    // To leave the loop is to hang up.
    if (length > longestAnswer) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
