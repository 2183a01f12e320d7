import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { Group, RunStart } from '@hatchway/protocol'
import type { Layout } from '../../base/layout.ts'
import type { SentTexts } from '../../sandboxes/sent-texts.ts'
import { keyOf, keyProblem, type ModelProblem, sentenceOf } from '../model-gateway/health.ts'
import type { ModelSocket } from '../model-gateway/socket.ts'
import type { LaunchedRun, LaunchOptions } from './types.ts'

/** Its name is in the mount table of the sandbox, so it does not reveal the run's id. */
export const runDirectory = (layout: Layout, start: RunStart): string =>
  join(layout.state, 'runs', createHash('sha256').update(start.run_id).digest('hex').slice(0, 16))

/** The error of a run that cannot be started before somebody does something about it. */
export function failWith(
  { config, health }: LaunchOptions,
  start: RunStart,
  group: Group,
  problem: ModelProblem,
): Error {
  // In a chat the failed run itself says so in a moment.
  health?.note(start.run_id, group, problem, start.kind === 'chat' ? 'quiet' : undefined)
  return new Error(sentenceOf(problem, config.model.keyVariable))
}

/** Opens the socket on which a run reaches its model; undefined: it asks none, or there is no key. */
export async function openModel(
  options: LaunchOptions,
  { start, group, driver, owner }: LaunchedRun,
  sent: SentTexts | undefined,
): Promise<ModelSocket | undefined> {
  const { config, environment, health, log } = options
  if (driver?.model === 'none') return undefined
  const problem = keyProblem(config, environment)
  if (problem && driver?.model === 'required') throw failWith(options, start, group, problem)
  if (problem) return undefined
  // Node's http takes fifteen megabytes, and most daemons are idle most of the time.
  const { serveModel } = await import('../model-gateway/socket.ts')
  return serveModel({
    directory: runDirectory(options.layout, start),
    owner,
    url: config.model.url,
    key: keyOf(config, environment),
    log,
    listen: sent?.listen,
    onOutcome: outcome => health?.note(start.run_id, group, outcome),
    onUsage: ({ model, inputTokens, outputTokens }) =>
      options.store.addUsage({
        group: group.folder,
        day: options.now().toISOString().slice(0, 10),
        model,
        requests: 1,
        inputTokens,
        outputTokens,
      }),
  })
}
