import type { Host, ModelChoice } from '../api/host.ts'
import { version } from '../base/version.ts'
import { type Config, withChangeableModel } from '../config.ts'
import { openDaemon } from './daemon.ts'
import type { OpenOptions } from './data.ts'
import { type Kernel, openKernel } from './kernel.ts'
import { openModelChoice } from './model-choice.ts'

export type { OpenOptions } from './data.ts'

/**
 * Puts the parts together on a data directory, which is ours alone from here to `stop`. Each step gets what the steps
 * before it have made; where an earlier part has to reach a later one, the later one listens to its notices.
 *
 *   data.ts     the lock, the store, what is refused
 *   kernel.ts   effects, commands, plugins: enough to look at the data, or to change it
 *   daemon.ts   requests, guard, chats, intake: takes files and answers them
 *   runs.ts     agents
 */
export async function openHost(given: Config, options: OpenOptions): Promise<Host> {
  const { config, use } = withChangeableModel(given)
  const kernel = await openKernel(config, options)
  const host = hostWithoutDaemon(kernel, openModelChoice(given, kernel.store, use))
  const { spool, attachments } = kernel
  if (spool && attachments) return openDaemon({ ...kernel, spool, attachments }, host)
  kernel.effects.begin()
  return host
}

function hostWithoutDaemon(kernel: Kernel, modelChoice: ModelChoice): Host {
  const { config, store, plugins, effects, spool, startedAt } = kernel
  const { quarantine, retries, meter, changes, operator } = kernel
  return {
    ...{ config, modelChoice, store, plugins, quarantine, retries, meter, changes },
    ...operator,
    routes: plugins.routes,
    publicRoutes: plugins.publicRoutes,
    status: () => ({
      version,
      pid: process.pid,
      data: config.data,
      startedAt,
      durability: config.durability,
      groups: store.groups().length,
      handled: 0,
      refused: 0,
      busy: spool?.busy() ?? false,
    }),
    clearTaint(group, context) {
      const was = store.taints.clear(group, context)
      effects.apply([{ kind: 'tasks_changed', folder: group }, { kind: 'groups_changed' }])
      return was
    },
    chats: undefined,
    agents: () => undefined,
    services: () => undefined,
    hostWork: () => undefined,
    mode: () => undefined,
    isReady: () => false,
    subscribe: () => () => {},
    onAnswered: () => () => {},
    start: async () => {},
    startAgents: async () => {},
    stop: () => kernel.stop(),
  }
}
