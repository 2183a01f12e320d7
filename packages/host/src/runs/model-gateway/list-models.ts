import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import type { ChosenModel } from '../../config/model.ts'
import type { ModelProblem } from './health.ts'
import { createOutcome } from './outcome.ts'
import { requestFor } from './request.ts'
import { createUpstream } from './upstream.ts'

/** Asks a provider for its list of models, which costs nothing. Whatever answers may be anything: bytes, time and names are bounded. */
const mostBytes = 4_194_304
const mostModels = 1000

/** `models` is undefined where the provider has no list, or one that cannot be read. */
type ModelList =
  | { problem: ModelProblem; status?: number }
  | { problem?: undefined; models: readonly ListedModel[] | undefined }

export interface ListedModel {
  name: string
  /** when it was made, or fetched to a server of one’s own; 0: the provider does not say */
  at: number
}

/** As `model.name` may be. */
const nameSchema = z.string().regex(/^[\w.:@/+-]{1,128}$/)
const instant = z
  .union([z.number(), z.string()])
  .transform(at => (typeof at === 'number' ? at : Date.parse(at) / 1000))
  .catch(0)

/** What is wrong with an item takes a hundred times its room to say: items are parsed one by one, and only so many. */
const listSchema = z.union([
  z.object({ data: z.array(z.unknown()) }),
  z.object({ models: z.array(z.unknown()) }),
])
const modelSchema = z.looseObject({
  id: z.unknown().optional(),
  name: z.unknown().optional(),
  created: instant.optional(),
  created_at: instant.optional(),
})

export async function listModels(model: ChosenModel, key: string, mostMs: number): Promise<ModelList> {
  const isGoogle = model.apis.every(api => api === 'generate')
  const path = isGoogle ? '/v1beta/models' : '/v1/models'
  const headers = model.apis.includes('messages') ? { 'anthropic-version': '2023-06-01' } : {}
  const wanted = requestFor('GET', path, headers, key, {
    ...model,
    keyHeader: model.keyHeader ?? 'x-api-key',
  })
  if ('status' in wanted) return { problem: { cause: 'failing', code: wanted.message } }
  const asked = createUpstream(model.url, mostMs)(wanted, Buffer.alloc(0))
  // A server that sends a byte now and then is not waited for.
  const timer = setTimeout(
    () => asked.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })),
    mostMs,
  )
  try {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      asked.on('response', resolve)
      asked.on('error', reject)
    })
    const { statusCode: status = 502 } = answer
    const said = await bounded(answer)
    // Not every server has a list.
    if (status === 404) return { models: undefined }
    const outcome = createOutcome('/v1/messages', status)
    outcome.push(said)
    if (status >= 400)
      return { problem: outcome.problem() ?? { cause: 'failing', code: String(status) }, status }
    return { models: status === 200 ? modelsIn(said) : undefined }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : undefined
    return { problem: { cause: 'unreachable', ...(code !== undefined && { code }) } }
  } finally {
    clearTimeout(timer)
    asked.destroy()
  }
}

/** What is larger is no list. */
async function bounded(answer: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of answer) {
    size += chunk.length
    if (size > mostBytes) return Buffer.alloc(0)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function modelsIn(said: Buffer): ListedModel[] | undefined {
  let list: z.output<typeof listSchema>
  try {
    list = listSchema.parse(JSON.parse(said.toString()))
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError) return undefined
    throw error
  }
  const found: ListedModel[] = []
  for (const item of ('data' in list ? list.data : list.models).slice(0, mostModels)) {
    const { data } = modelSchema.safeParse(item)
    if (!data) return undefined
    const { id, name, created, created_at } = data
    const isData = 'data' in list
    const given = isData ? id : typeof name === 'string' ? name.replace(/^models\//, '') : undefined
    const at = isData ? (created ?? created_at ?? 0) : 0
    const read = nameSchema.safeParse(given)
    if (read.success) found.push({ name: read.data, at: Number.isFinite(at) ? at : 0 })
  }
  return found
}
