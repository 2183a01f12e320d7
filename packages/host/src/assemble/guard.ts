import type { Outcome } from '@hatchway/protocol'
import type { Logger } from 'pino'
import type { Fault } from '../base/fault.ts'
import type { Notices } from '../base/notices.ts'
import type { Retries } from '../base/retry.ts'
import type { Commands } from '../commands/registry.ts'
import type { Work } from '../commands/service-tools.ts'
import type { CommandContext } from '../commands/types.ts'
import type { Config } from '../config.ts'
import { taintOfLabels } from '../guard/gates.ts'
import type { GuardRules } from '../guard/guard.ts'
import { createInspector } from '../guard/inspector/inspector.ts'
import type { SecretSearch } from '../guard/secrets/search.ts'
import { findSharedMounts } from '../guard/shared-mounts.ts'
import type { Effects } from '../outcomes/effects.ts'
import { createHeldCommands, type HeldCommands } from '../services/held.ts'
import type { RequestQueue } from '../services/request-queue.ts'
import type { RequestRow, Store } from '../store/types.ts'
import type { Notice } from './notices.ts'

export interface OpenGuard {
  heldCommands: HeldCommands
  /** looks through what a service has brought in from strangers, and notes what looks like orders to the agent */
  read(request: RequestRow, outcome: Outcome): void
  stop(): Promise<void>
}

/** The guard of a daemon: what looks at held commands, put together. */
export function openGuard(options: {
  config: Config
  store: Store
  commands: Commands
  rules: GuardRules
  requestQueue: RequestQueue
  effects: Pick<Effects, 'apply' | 'decided'>
  secrets: SecretSearch
  /** a person has to decide, and is asked by whoever hears of it */
  notices: Pick<Notices<Notice>, 'publish'>
  workFor(command: string, folder: string): Work | undefined
  context(folder: string): Pick<CommandContext, 'seq' | 'now' | 'timezone' | 'limits' | 'services' | 'host'>
  environment: NodeJS.ProcessEnv
  retries: Retries
  fault: Fault
  log: Logger
}): OpenGuard {
  const {
    config,
    store,
    rules,
    requestQueue,
    effects,
    secrets,
    notices,
    context,
    environment,
    retries,
    fault,
    log,
  } = options
  const inspector = createInspector({ settings: config.inspector, environment })
  const heldCommands = createHeldCommands({
    store,
    commands: options.commands,
    requestQueue,
    effects,
    rules,
    context,
    findSecrets: secrets.findSecrets,
    evidence: async ({ command: { type, payload } }, group, signal) =>
      options.workFor(type, group.folder)?.evidence?.(payload, { group, signal }),
    inspect: inspector.inspect,
    approvals: {
      ruleFor(group, digests) {
        const rule = digests.map(digest => store.approvals.ruleFor(group, digest)).find(Boolean)
        return rule && { by: `rule:${rule.id}` }
      },
      ask: (request, held, why, hasSecrets) =>
        notices.publish({ kind: 'approval_needed', request, held, why, hasSecrets }),
      isAsked: isAskedIn(store),
    },
    retries,
    fault,
    log,
    now: Date.now,
  })
  const leaving = new AbortController()

  const read = async (request: RequestRow, outcome: Outcome): Promise<void> => {
    const tool = context(request.group).services?.catalogue.find(request.tool)
    if (request.kind !== 'service' || !outcome.ok || !tool || !taintOfLabels(tool.labels).corrupted) return
    const text = JSON.stringify(outcome.result)
    const found = await inspector.inspectText(text, `what ${tool.name} has brought in`, leaving.signal)
    if (found.verdict !== 'deny') return
    log.warn(
      { group: request.group, tool: tool.name, reason: found.reason },
      'strangers give orders to an agent',
    )
    store.audit.append({
      at: Date.now(),
      group: request.group,
      actor: 'agent',
      action: request.tool,
      summary: 'what it has brought in looks like orders to the agent',
      outcome: 'noted',
      verdict: 'deny',
      decidedBy: `inspector:${found.by}`,
      reason: found.reason,
      requestId: request.reply?.id ?? null,
    })
  }

  return {
    heldCommands,
    read(request, outcome) {
      read(request, outcome).catch(error => {
        if (!leaving.signal.aborted) log.error({ err: error }, 'what came in could not be looked through')
      })
    },
    async stop() {
      leaving.abort()
      await secrets.close()
    },
  }
}

/** Whether a person has been asked about a held command, and nothing has come of it yet. */
export const isAskedIn =
  (store: Store) =>
  (seq: number): boolean =>
    store.approvals.approval(seq)?.status === 'open'

/** What the configuration says about a group, whose folder is told apart without case. */
export function rulesFrom(
  config: Config,
  { isOffline }: Pick<GuardRules, 'isOffline'>,
  store: Pick<Store, 'groups'>,
): GuardRules {
  const registered = () => store.groups().map(({ folder }) => folder)
  const secret = new Set(
    Object.entries(config.groups)
      .filter(([, { containsSecrets }]) => containsSecrets === true)
      .map(([folder]) => folder.toLowerCase()),
  )
  return {
    isOffline,
    writersFor: findSharedMounts(config.groups, registered).writersFor,
    containsSecrets: folder => secret.has(folder.toLowerCase()),
    approvalMs: config.guard.approvalMs,
  }
}
