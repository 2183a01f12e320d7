import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { z } from 'zod'
import type { ChosenModel } from '../../config/model.ts'
import type { ModelProblem } from './health.ts'
import { createOutcome } from './outcome.ts'
import { requestFor } from './request.ts'
import { createUpstream } from './upstream.ts'

/** Asks a provider for its list of models, which costs nothing, and says what keeps a model from being asked, if anything. */
const silenceMs = 8000
const noBody = Buffer.alloc(0)

const listSchema = z.object({
  data: z.array(z.object({ id: z.string() })).optional(),
  models: z.array(z.object({ name: z.string().optional() })).optional(),
})

export async function tryModel(model: ChosenModel, key: string): Promise<ModelProblem | undefined> {
  const isGoogle = model.apis.every(api => api === 'generate')
  const path = isGoogle ? '/v1beta/models' : '/v1/models'
  const headers = model.apis.includes('messages') ? { 'anthropic-version': '2023-06-01' } : {}
  const wanted = requestFor('GET', path, headers, key, {
    ...model,
    keyHeader: model.keyHeader ?? 'x-api-key',
  })
  if ('status' in wanted) return { cause: 'failing', code: wanted.message }
  let answer: IncomingMessage
  let said: string
  try {
    answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const asked = createUpstream(model.url, silenceMs)(wanted, noBody)
      asked.on('response', resolve)
      asked.on('error', reject)
      asked.on('timeout', () => asked.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })))
    })
    said = await text(answer)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : undefined
    return { cause: 'unreachable', ...(code !== undefined && { code }) }
  }
  const { statusCode: status = 502 } = answer
  // Not every server has a list.
  if (status === 404) return undefined
  const outcome = createOutcome('/v1/messages', status)
  outcome.push(Buffer.from(said))
  return status >= 400
    ? (outcome.problem() ?? { cause: 'failing', code: String(status) })
    : unlisted(model, said)
}

/** A model that the provider does not list; one that is not named, and a list that is none, are left to the first request. */
function unlisted({ name }: ChosenModel, said: string): ModelProblem | undefined {
  if (name === undefined) return undefined
  let list: z.infer<typeof listSchema>
  try {
    list = listSchema.parse(JSON.parse(said))
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError) return undefined
    throw error
  }
  const listed = [
    ...(list.data ?? []).map(({ id }) => id),
    ...(list.models ?? []).map(one => one.name?.replace(/^models\//, '')),
  ]
  // Ollama means the newest where no other is said.
  const isListed = listed.length === 0 || listed.includes(name) || listed.includes(`${name}:latest`)
  return isListed ? undefined : { cause: 'model_unknown', model: name }
}
