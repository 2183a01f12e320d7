import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { Group, RunStart } from '@hatchway/protocol'
import type { Layout } from '../../base/layout.ts'
import type { ChosenModel } from '../../config/model.ts'
import { priceNameOf } from '../../config/usage.ts'
import type { SentTexts } from '../../sandboxes/sent-texts.ts'
import type { DriverTraits } from '../drivers.ts'
import { keyOf, keyProblem, type ModelProblem, modelOf, sentenceOf } from '../model-gateway/health.ts'
import type { ModelSocket } from '../model-gateway/socket.ts'
import type { LaunchedRun, LaunchOptions } from './types.ts'

/** Its name is in the mount table of the sandbox, so it does not reveal the run's id. */
export const runDirectory = (layout: Layout, start: RunStart): string =>
  join(layout.state, 'runs', createHash('sha256').update(start.run_id).digest('hex').slice(0, 16))

/** The error of a run that cannot be started before somebody does something about it. */
export function failWith(
  { config, environment, health }: LaunchOptions,
  start: RunStart,
  group: Group,
  problem: ModelProblem,
): Error {
  // In a chat the failed run itself says so in a moment.
  health?.note(start.run_id, group, problem, start.kind === 'chat' ? 'quiet' : undefined)
  return new Error(sentenceOf(problem, modelOf(config, environment, group.folder)))
}

/** Opens the socket on which a run reaches its model; undefined: it asks none, or there is no key. */
export async function openModel(
  options: LaunchOptions,
  { start, group, driver, owner }: LaunchedRun,
  sent: SentTexts | undefined,
): Promise<ModelSocket | undefined> {
  const { config, environment, health, log, meter } = options
  if (driver?.model === 'none') return undefined
  const model = modelOf(config, environment, group.folder)
  const problem = keyProblem(model, environment) ?? unspoken(driver, model, start.driver.name)
  if (problem && driver?.model === 'required') throw failWith(options, start, group, problem)
  if (problem) return undefined
  // Node's http takes fifteen megabytes, and most daemons are idle most of the time.
  const { serveModel } = await import('../model-gateway/socket.ts')
  return serveModel({
    directory: runDirectory(options.layout, start),
    owner,
    url: model.url,
    key: keyOf(model, environment),
    manner: model,
    log,
    listen: sent?.listen,
    onOutcome: outcome => health?.note(start.run_id, group, outcome),
    mayAsk: () => meter?.reached(group.folder),
    onUsage(used) {
      const day = options.now().toISOString().slice(0, 10)
      const usage = { group: group.folder, day, requests: 1, ...used }
      options.store.addUsage(usage, priceNameOf(config.usage.prices, used.model))
      meter?.add(usage)
      const near = meter?.near(group.folder)
      if (near && !meter?.reached(group.folder)) health?.note(start.run_id, group, near)
    },
  })
}

/** A driver that speaks another API than the provider. */
const unspoken = (
  driver: DriverTraits | undefined,
  { apis }: ChosenModel,
  name: string,
): ModelProblem | undefined =>
  driver?.speaks && !driver.speaks.some(api => apis.includes(api))
    ? { cause: 'api_missing', driver: name }
    : undefined
