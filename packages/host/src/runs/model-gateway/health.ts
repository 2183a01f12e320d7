import type { Group } from '@hatchway/protocol'
import type { Logger } from 'pino'
import { type ChosenModel, chosenModel } from '../../config/model.ts'
import { type Config, settingsOf } from '../../config.ts'
import { drivers } from '../drivers.ts'

/**
 * What the host knows about its model: whether there is a key, and what the model API has answered last. Whatever keeps
 * agents from being answered is said at once, in the chat and to the operator, since agents themselves only try again.
 */
type ModelCause =
  | 'driver_missing'
  | 'key_missing'
  | 'key_invalid'
  | 'key_refused'
  | 'unreachable'
  | 'model_unknown'
  | 'rate_limited'
  | 'no_credit'
  | 'failing'
  | 'api_missing'
  | 'limit_near'
  | 'limit_reached'

export interface ModelProblem {
  cause: ModelCause
  /** what the system calls it: ENOTFOUND, a status */
  code?: string
  /** the gateway tries again by itself */
  isRetried?: boolean
  /** of usage: which one, and how much of it is used */
  limit?: string
  /** the model that is not known; only where it looks like a name, since agents choose it */
  model?: string
  /** the one that is not installed */
  driver?: string
}

export interface ModelHealth {
  /** how a request of a run ended; undefined: well */
  note(runId: string, group: Group, problem: ModelProblem | undefined, manner?: 'quiet'): void
  /** why the run could not ask its model when it last tried, in a sentence */
  problemOf(runId: string): string | undefined
  runEnded(runId: string): void
  /** another model is asked from now on: nothing is known of it yet */
  modelChanged(): void
  /** what the operator has to know until it is mended */
  warning(): string | undefined
}

export interface ModelHealthOptions {
  config: Config
  environment: NodeJS.ProcessEnv
  /** a driver of the configuration that is not installed; looked up each time, as installing it needs no restart */
  missingDriver(): string | undefined
  /** says it in the group's chat */
  notify(group: Group, text: string): void
  /** what `warning` says is no longer the same */
  changed(): void
  log: Pick<Logger, 'warn'>
  now(): number
}

/** The same is not said again in a chat for so long, however many runs meet with it. */
const quietMs = 600_000

export function createModelHealth(options: ModelHealthOptions): ModelHealth {
  const { config, environment, log, now } = options
  const ofRun = new Map<string, { problem: ModelProblem; folder: string }>()
  /** when it was said, by group and cause */
  const told = new Map<string, number>()
  let latest: { problem: ModelProblem; folder: string } | undefined

  const sentence = (problem: ModelProblem, folder: string) =>
    sentenceOf(problem, modelOf(config, environment, folder))

  const notify = (group: Group, problem: ModelProblem) => {
    const topic = `${group.folder}/${problem.cause}/${problem.limit ?? ''}`
    const last = told.get(topic)
    if (last !== undefined && now() - last < quietMs) return
    told.set(topic, now())
    const text = sentence(problem, group.folder)
    log.warn({ group: group.folder, cause: problem.cause }, text)
    options.notify(group, text)
  }

  return {
    note(runId, group, problem, manner) {
      // Nothing is wrong yet.
      if (problem?.cause === 'limit_near') return notify(group, problem)
      const isNew = latest?.problem.cause !== problem?.cause
      if (problem?.cause !== 'driver_missing') latest = problem && { problem, folder: group.folder }
      if (isNew) options.changed()
      if (!problem) {
        ofRun.delete(runId)
        return
      }
      ofRun.set(runId, { problem, folder: group.folder })
      if (manner !== 'quiet') notify(group, problem)
    },
    problemOf(runId) {
      const found = ofRun.get(runId)
      return found && sentence({ ...found.problem, isRetried: false }, found.folder)
    },
    runEnded: runId => void ofRun.delete(runId),
    modelChanged() {
      latest = undefined
      told.clear()
      options.changed()
    },
    warning() {
      const driver = options.missingDriver()
      if (driver !== undefined)
        return sentenceOf({ cause: 'driver_missing', driver }, modelOf(config, environment))
      return missingKey(config, environment) ?? (latest && sentence(latest.problem, latest.folder))
    },
  }
}

/** The model that a group's agent asks; without a folder, that of all groups without one of their own. */
export const modelOf = (config: Config, environment: NodeJS.ProcessEnv, folder?: string): ChosenModel =>
  chosenModel(
    (folder === undefined ? undefined : settingsOf(config, folder).model) ?? config.model,
    environment,
  )

/** A line break at the end comes from the file that it was read from. */
export const keyOf = ({ keyVariable }: ChosenModel, environment: NodeJS.ProcessEnv): string =>
  keyVariable === '' ? '' : (environment[keyVariable] ?? '').trim()

/** why no model can be asked, as far as this is known without asking one */
export function keyProblem(model: ChosenModel, environment: NodeJS.ProcessEnv): ModelProblem | undefined {
  const key = keyOf(model, environment)
  if (key === '') return model.needsKey ? { cause: 'key_missing' } : undefined
  return /^[\x21-\x7e]+$/.test(key) ? undefined : { cause: 'key_invalid' }
}

/** The models of those agents that do nothing without one, each with the folder of a group that asks it. */
export function modelsInUse(config: Config): { folder: string | undefined }[] {
  if (config.agents.enabled !== 'yes') return []
  const needs = (driver: keyof typeof drivers) => drivers[driver].model === 'required'
  const own = Object.entries(config.groups)
    .filter(([, group]) => needs(group.driver ?? config.agents.driver) && (group.model || group.driver))
    .map(([folder]) => ({ folder }))
  return needs(config.agents.driver) ? [{ folder: undefined }, ...own] : own
}

/** The first key that is missing where an agent does nothing without it. */
function missingKey(config: Config, environment: NodeJS.ProcessEnv): string | undefined {
  for (const { folder } of modelsInUse(config)) {
    const model = modelOf(config, environment, folder)
    const problem = keyProblem(model, environment)
    if (problem) return sentenceOf(problem, model)
  }
  return undefined
}

export function sentenceOf(
  { cause, model, driver, code, isRetried, limit }: ModelProblem,
  { keyVariable, title, url, provider }: ChosenModel,
): string {
  const api = provider === undefined ? 'The model API' : title
  const detail = code === undefined ? '' : ` (${code})`
  switch (cause) {
    case 'driver_missing':
      return `The driver ${driver} is not installed (driver_missing). Run on the host: npx hatchway agents add ${driver}`
    case 'key_missing':
      return `There is no key for the model: ${keyVariable} is empty where the host runs. Set it and restart Hatchway.`
    case 'key_invalid':
      return `${keyVariable} holds characters that no key has. Correct it and restart Hatchway.`
    case 'key_refused':
      if (keyVariable === '')
        return `${api} wants a key, and a model that was chosen while the host runs is asked without one. Put it into MODEL_API_KEY, name the model in the configuration and restart Hatchway.`
      return `${api} refuses the host’s key. Put a valid one into ${keyVariable} and restart Hatchway.`
    case 'api_missing':
      return `The driver ${driver} cannot speak with ${title}. Set the driver \`assistant\`, which can, or choose another model.`
    case 'unreachable':
      return `The host cannot reach the model API at ${hostOf(url)}${detail}. ${
        isRetried ? 'It tries again.' : 'Check the network of the host and its setting `model.url`.'
      }`
    case 'model_unknown':
      return `${api} does not know ${model === undefined ? 'the model that the agent asks for' : `the model ${model}`}. Correct its name, or use a key that may use it.`
    case 'rate_limited':
      return `${api} answers that its rate limit is reached. ${
        isRetried ? 'The host tries again; the answer may take longer.' : 'Try again in a while.'
      }`
    case 'no_credit':
      return `The account at ${title} has no credit left. Top it up with the provider.`
    case 'failing':
      return `${api} answers with errors of its own${detail}. ${
        isRetried ? 'The host tries again' : 'The host has tried again, in vain'
      }; the provider’s status page may say more.`
    case 'limit_near':
      return `${limit} is nearly reached. After that the agent’s model is not asked any more.`
    case 'limit_reached':
      return `${limit} is reached, so the agent’s model is not asked any more. To go on today, run on the host: npx hatchway usage raise`
  }
}

const hostOf = (url: string) => (URL.canParse(url) ? new URL(url).host : 'an address that is none')
