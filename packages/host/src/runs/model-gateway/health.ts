import type { Group } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { Config } from '../../config.ts'
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

export interface ModelProblem {
  cause: ModelCause
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
  const { keyVariable } = config.model
  const ofRun = new Map<string, ModelProblem>()
  /** when it was said, by group and cause */
  const told = new Map<string, number>()
  let latest: ModelProblem | undefined

  const sentence = (problem: ModelProblem) => sentenceOf(problem, keyVariable)

  const notify = (group: Group, problem: ModelProblem) => {
    const topic = `${group.folder}/${problem.cause}`
    const last = told.get(topic)
    if (last !== undefined && now() - last < quietMs) return
    told.set(topic, now())
    log.warn({ group: group.folder, cause: problem.cause }, sentence(problem))
    options.notify(group, sentence(problem))
  }

  return {
    note(runId, group, problem, manner) {
      const isNew = latest?.cause !== problem?.cause
      if (problem?.cause !== 'driver_missing') latest = problem
      if (isNew) options.changed()
      if (!problem) {
        ofRun.delete(runId)
        return
      }
      ofRun.set(runId, problem)
      if (manner !== 'quiet') notify(group, problem)
    },
    problemOf(runId) {
      const problem = ofRun.get(runId)
      return problem && sentence(problem)
    },
    runEnded: runId => void ofRun.delete(runId),
    warning() {
      const driver = options.missingDriver()
      if (driver !== undefined) return sentence({ cause: 'driver_missing', driver })
      const problem = (needsKey(config) ? keyProblem(config, environment) : undefined) ?? latest
      return problem && sentence(problem)
    },
  }
}

/** A line break at the end comes from the file that it was read from. */
export const keyOf = (config: Config, environment: NodeJS.ProcessEnv): string =>
  (environment[config.model.keyVariable] ?? '').trim()

/** why no model can be asked, as far as this is known without asking one */
export function keyProblem(config: Config, environment: NodeJS.ProcessEnv): ModelProblem | undefined {
  const key = keyOf(config, environment)
  if (key === '') return { cause: 'key_missing' }
  return /^[\x21-\x7e]+$/.test(key) ? undefined : { cause: 'key_invalid' }
}

/** Whether some group's agent is one that does nothing without a model. */
export const needsKey = ({ agents, groups }: Config): boolean =>
  agents.enabled === 'yes' &&
  [agents, ...Object.values(groups)].some(({ driver }) => driver && drivers[driver].model === 'required')

export function sentenceOf({ cause, model, driver }: ModelProblem, keyVariable: string): string {
  switch (cause) {
    case 'driver_missing':
      return `The driver ${driver} is not installed (driver_missing). Run on the host: npx hatchway agents add ${driver}`
    case 'key_missing':
      return `There is no key for the model: ${keyVariable} is empty where the host runs. Set it and restart Hatchway.`
    case 'key_invalid':
      return `${keyVariable} holds characters that no key has. Correct it and restart Hatchway.`
    case 'key_refused':
      return `The model API refuses the host’s key. Put a valid one into ${keyVariable} and restart Hatchway.`
    case 'unreachable':
      return 'The host cannot reach the model API. Check the network of the host and its setting `model.url`.'
    case 'model_unknown':
      return `The model API does not know ${model === undefined ? 'the model that the agent asks for' : `the model ${model}`}. Correct its name, or use a key that may use it.`
    case 'rate_limited':
      return 'The model API answers that its rate limit is reached. The agent goes on trying; the answer may take longer.'
    case 'no_credit':
      return 'The account of the model API has no credit left. Top it up with the provider.'
    case 'failing':
      return 'The model API answers with errors of its own. The agent goes on trying; the provider’s status page may say more.'
  }
}
