import { join } from 'node:path'
import type { Group } from '@hatchway/protocol'
import { createClaims, createSpool, reasonOf, type Spool } from '@hatchway/spool'
import { createGroupDirectories, inboxOf } from '../base/layout.ts'
import { createChanges } from '../base/metrics/changes.ts'
import { createMeter } from '../base/metrics/meter.ts'
import { createNotices } from '../base/notices.ts'
import { type Attachments, createAttachments } from '../chat/attachments/attachments.ts'
import { createChannels } from '../chat/channels/registry.ts'
import { kernelCommands } from '../commands/index.ts'
import { createCommands } from '../commands/registry.ts'
import type { Config } from '../config.ts'
import { createContexts } from '../guard/contexts.ts'
import { taintOf } from '../guard/guard.ts'
import { createSecretSearch } from '../guard/secrets/search.ts'
import { viewFor } from '../guard/withheld.ts'
import { createRateLimit, type RateLimit } from '../intake/rate.ts'
import { createReporter } from '../intake/spool-reports.ts'
import { createEffects } from '../outcomes/effects.ts'
import { createReplies } from '../outcomes/replies.ts'
import { createSnapshots } from '../outcomes/snapshots.ts'
import { openPlugins } from '../plugin-api/open.ts'
import { combineHooks } from '../runs/hooks.ts'
import { inside } from '../sandboxes/mounts.ts'
import { createAgents } from './agents.ts'
import { type Data, type OpenOptions, openData } from './data.ts'
import { rulesFrom } from './guard.ts'
import { createHostWork, rulesWithoutDaemon } from './host-work.ts'
import type { Notice } from './notices.ts'
import { createOperator } from './operator.ts'
import { configuredPlugins } from './plugins.ts'

export type Kernel = Awaited<ReturnType<typeof openKernel>>

/** What only a daemon has is there. */
export interface DaemonKernel extends Kernel {
  spool: Spool
  attachments: Attachments
}

/** What every process that opens a data directory needs: commands, what follows them, and the plugins. */
export async function openKernel(config: Config, options: OpenOptions) {
  const data = await openData(config, options)
  const { log, layout, store, owners, quarantine, now } = data
  const isGuarded = config.guard.enabled === 'yes'
  const notices = createNotices<Notice>()
  const changes = createChanges()
  const agents = createAgents(config)
  const rules = rulesFrom(config, agents, store)
  const contexts = createContexts(store, rules)
  const viewOf = ({ folder, main }: Group) =>
    viewFor(taintOf(store.taints.of, rules, folder), store.taints.texts(main ? undefined : folder), rules)
  const snapshots = createSnapshots({ ...data, ...(isGuarded ? { view: viewOf } : {}) })
  const replies = createReplies({ layout, owners, log })
  const rate = createRateLimit({ perMinute: config.limits.commandsPerMinute })
  const spool = options.watch ? spoolOf(data, rate) : undefined
  const effects = createEffects({ ...data, notices, spool, replies, snapshots, requests: store.requests })
  const commands = createCommands(kernelCommands)
  const hooks = combineHooks()
  const work = createHostWork({ config, commands, hooks, runOf: agents.runOf })
  const operator = createOperator({
    ...data,
    commands,
    effects,
    host: options.watch ? work.rules : rulesWithoutDaemon,
    adopt: spool ? spool.adopt : adoptLater(data),
  })
  const secrets = options.watch && isGuarded ? createSecretSearch() : undefined
  const attachments = options.watch
    ? createAttachments({
        ...data,
        placeOf: folder => (agents.isInside(folder) ? inside.group : join(layout.groups, folder)),
        ...(secrets ? { findSecrets: secrets.findSecrets } : {}),
        apply: effects.apply,
        now: Date.now,
      })
    : undefined
  const channels = createChannels({ log })
  const closing = new AbortController()
  const plugins = await openPlugins(configuredPlugins(config, process.env), {
    ...data,
    limits: config.limits,
    timezone: config.timezone,
    durability: config.durability,
    environment: process.env,
    isDaemon: options.watch,
    runsAgents: config.agents.enabled === 'yes',
    signal: closing.signal,
    supervision: options.supervision,
    publish: effects.apply,
    perform: operator.perform,
    tellAgent: (folder, about, text) => notices.publish({ kind: 'agent_told', folder, about, text }),
    share: contexts.share,
    readAttachment: async id => attachments?.read(id),
    leaveFile: (folder, name, content) =>
      attachments?.leave(folder, name, content) ?? Promise.reject(new Error('Only a daemon leaves files.')),
    attach: channels.attach,
  })
  commands.add(plugins.commands)
  hooks.add(plugins.runs)
  work.add([...(attachments ? [attachments.work] : []), ...plugins.work])
  store.whenGroupGoes(plugins.forgetGroup)
  notices.on('group_added', ({ folder }) => groupAdded(data, spool, folder))
  notices.on('tasks_changed', () => changes.note('tasks'))
  notices.on('groups_changed', () => changes.note('groups'))

  return {
    ...data,
    ...{
      agents,
      attachments,
      changes,
      channels,
      commands,
      contexts,
      effects,
      hooks,
      notices,
      operator,
      plugins,
    },
    ...{ rate, replies, rules, secrets, snapshots, spool, work },
    meter: createMeter(Date.now()),
    startedAt: now().toISOString(),
    /** plugins stop what they have under way */
    signalStop: () => closing.abort(),
    /** `stopOthers`: those that end after the last file was taken, and before the store is closed */
    async stop(stopOthers?: () => Promise<void>) {
      closing.abort()
      await plugins.stop()
      await spool?.stop()
      replies.stop()
      await stopOthers?.()
      snapshots.stop()
      quarantine.flush()
      data.close()
    },
  }
}

function spoolOf(data: Data, rate: RateLimit): Spool {
  const { config, layout, store, fault } = data
  return createSpool({
    claimed: layout.spool,
    firstSeq: store.lastSeq() + 1,
    fileLimit: config.limits.fileBytes,
    waitingLimit: config.limits.filesWaiting,
    events: config.events,
    sweepMs: config.sweepMs,
    pollMinMs: config.pollMinMs,
    pollMaxMs: config.pollMaxMs,
    graceMs: config.graceMs,
    spinMs: config.spinMs,
    allowance: inbox => {
      const time = performance.now()
      const files = rate.allowance(inbox, time)
      return { files, retryMs: files > 0 ? 0 : rate.readyAt(inbox, time) - time }
    },
    report: createReporter({ ...data, filesWaiting: config.limits.filesWaiting }),
    fault,
  })
}

/** Without a daemon the file waits among the claimed ones, which the next daemon finishes first. */
const adoptLater =
  ({ config, layout, store }: Data): Spool['adopt'] =>
  (path, inbox, drop, name) => {
    const claims = createClaims({
      directory: layout.spool,
      fileLimit: config.limits.fileBytes,
      firstSeq: store.lastSeq() + 1,
    })
    claims.recover()
    const file = claims.adopt(path, inbox, drop, name)
    return typeof file === 'string' ? file : undefined
  }

function groupAdded({ store, layout, owners, log }: Data, spool: Spool | undefined, folder: string): void {
  const group = store.group(folder)
  if (!group) return
  try {
    createGroupDirectories(layout, group, owners(group.folder))
  } catch (error) {
    // The group is registered, and what else its batch asked for must not suffer; the spool says what is missing.
    const reason = reasonOf(error)
    log.error({ group: folder, reason }, 'the directories of a group could not be created')
  }
  // It may have been watched while it was not registered, with other directories.
  spool?.remove(folder)
  spool?.add(inboxOf(layout, group))
}
