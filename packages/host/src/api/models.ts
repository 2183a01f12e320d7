import { folderSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { keyOf, keyProblem, modelOf, modelsInUse, sentenceOf } from '../runs/model-gateway/health.ts'
import { limitsAnswer, modelsAnswer } from './answers.ts'
import type { Host, HostContext } from './host.ts'
import { type Route, routesOf } from './route.ts'

const route = routesOf<HostContext>('models')

/** Which models agents ask, and how much of them may be used. */
export const modelRoutes: readonly Route<HostContext>[] = [
  route.post('/models/try', {
    summary: 'Ask each provider of a model for its list, and say what is wrong',
    role: 'admin',
    answer: modelsAnswer,
    handle: ({ host }) => tryAll(host),
  }),
  route.get('/usage/limits', {
    summary: 'The limits for the use of models, and what is used of them',
    role: 'viewer',
    answer: limitsAnswer,
    handle: ({ host }) => limitsOf(host),
  }),
  route.post('/usage/raise', {
    summary: 'Raise the limits of a group, or those of all together, until the day (UTC) is over',
    role: 'admin',
    body: z.object({
      group: folderSchema.optional(),
      factor: z.number().min(1).max(1000).default(2).describe('as many times as high'),
    }),
    answer: limitsAnswer,
    handle({ host }, { body }) {
      host.agents()?.meter.raise(body.group, body.factor)
      return limitsOf(host)
    },
  }),
]

const limitsOf = (host: Host) =>
  (host.agents()?.meter.states() ?? []).map(({ folder, ...state }) => ({ group: folder ?? null, ...state }))

/** Those that agents cannot do without, and the one of the configuration, whoever uses it. */
async function tryAll({ config }: Host) {
  // Node's http takes fifteen megabytes, and most daemons are idle most of the time.
  const { tryModel } = await import('../runs/model-gateway/try-model.ts')
  const used = modelsInUse(config)
  const isNamed = config.model.provider !== undefined
  const folders: (string | undefined)[] = [
    ...(isNamed || used.length === 0 ? [undefined] : []),
    ...used.map(({ folder }) => folder),
  ]
  return Promise.all(
    [...new Set(folders)].map(async folder => {
      const model = modelOf(config, process.env, folder)
      const key = keyOf(model, process.env)
      const problem = keyProblem(model, process.env) ?? (await tryModel(model, key))
      return {
        group: folder ?? null,
        provider: model.provider ?? null,
        name: model.name ?? null,
        url: model.url,
        key_variable: key === '' && !model.needsKey ? null : model.keyVariable,
        problem: problem ? sentenceOf(problem, model) : null,
      }
    }),
  )
}
