import { folderSchema, refusal } from '@hatchway/protocol'
import { z } from 'zod'
import {
  chosenAtRunTime,
  chosenModel,
  type ModelSettings,
  modelProblems,
  modelSchema,
} from '../config/model.ts'
import { type ProviderName, providerNames } from '../config/providers.ts'
import { drivers } from '../runs/drivers.ts'
import { keyOf, keyProblem, modelOf, modelsInUse, sentenceOf } from '../runs/model-gateway/health.ts'
import { chosenModelAnswer, foundModelsAnswer, limitsAnswer, modelsAnswer, removedAnswer } from './answers.ts'
import { ApiError } from './failure.ts'
import type { Host, HostContext } from './host.ts'
import { type Route, routesOf, unavailable } from './route.ts'

const route = routesOf<HostContext>('models')

/** Which models agents ask, and how much of them may be used. */
export const modelRoutes: readonly Route<HostContext>[] = [
  route.post('/models/try', {
    summary: 'Ask each provider of a model for its list, and say what is wrong',
    role: 'admin',
    answer: modelsAnswer,
    handle: ({ host }) => tryAll(host),
  }),
  route.post('/models/find', {
    summary: 'Look for models that could be used: keys in the host’s environment, servers on this machine',
    role: 'admin',
    answer: foundModelsAnswer,
    handle: ({ host }) => found(host),
  }),
  route.post('/models/choose', {
    summary: 'Try a model, and use it from the next run on; it needs no restart',
    role: 'admin',
    body: z.object({ provider: z.enum(providerNames), name: modelSchema.shape.name.unwrap() }),
    answer: chosenModelAnswer,
    handle: ({ host }, { body }) => choose(host, body),
  }),
  route.delete('/models/chosen', {
    summary: 'Forget the model that was chosen; what the configuration says counts again',
    role: 'admin',
    answer: removedAnswer,
    handle({ host }) {
      const removed = host.modelChoice.chosen() !== undefined
      use(host, undefined)
      return { removed }
    },
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
      const agents = host.agents()
      if (!agents)
        throw unavailable('Only a daemon that runs agents raises limits. Start it with hatchway up.')
      agents.meter.raise(body.group, body.factor)
      return limitsOf(host)
    },
  }),
]

const limitsOf = (host: Host) =>
  (host.agents()?.meter.states() ?? []).map(({ folder, ...state }) => ({ group: folder ?? null, ...state }))

async function found(host: Host) {
  const { findModels } = await import('../runs/model-gateway/find-models.ts')
  const { provider = null, name = null } = host.config.model
  return {
    current: provider === null ? null : { provider, name },
    is_configured: host.modelChoice.isConfigured,
    found: (await findModels(process.env)).map(({ keyVariable, problem, models, ...one }) => ({
      ...one,
      key_variable: keyVariable ?? null,
      models: [...models],
      problem: problem ?? null,
    })),
  }
}

async function choose(host: Host, wanted: { provider: ProviderName; name: string }) {
  const { config, modelChoice } = host
  if (modelChoice.isConfigured)
    throw new ApiError(
      refusal(
        'wrong_state',
        'The configuration names the model. Change `model` there (or HATCHWAY_MODEL) and restart Hatchway.',
      ),
    )
  const refuse = (problem: string) => new ApiError(refusal('invalid_field', problem))
  const [wrong] = modelProblems(wanted)
  if (wrong) throw refuse(`model.${wrong.setting} ${wrong.problem} Set it in the configuration.`)
  const model = chosenModel(chosenAtRunTime(wanted), process.env)
  const { speaks } = drivers[config.agents.driver]
  if (speaks && !speaks.some(api => model.apis.includes(api)))
    throw refuse(sentenceOf({ cause: 'api_missing', driver: config.agents.driver }, model))
  const { tryModel } = await import('../runs/model-gateway/try-model.ts')
  const problem = keyProblem(model, process.env) ?? (await tryModel(model, keyOf(model, process.env)))
  if (problem) throw refuse(sentenceOf(problem, model))
  use(host, wanted)
  return { ...wanted, driver: config.agents.driver }
}

/** Idle sessions end: whoever writes next is answered by the model that was chosen. */
function use(host: Host, model: ModelSettings | undefined): void {
  host.modelChoice.choose(model)
  const agents = host.agents()
  agents?.modelChanged()
  for (const { group, runId, kind } of agents?.queue.running() ?? [])
    if (kind === 'chat') agents?.queue.close(group, runId)
  host.changes.note('status')
}

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
