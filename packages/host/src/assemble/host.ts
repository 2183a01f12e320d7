import { join } from 'node:path'
import { type Group, refusal } from '@hatchway/protocol'
import { createClaims, createQuarantine, createSpool, type Report, type Spool } from '@hatchway/spool'
import type { Logger } from 'pino'
import type { Host, HostWork, OpenRuns } from '../api/host.ts'
import { faultFromEnvironment } from '../base/fault.ts'
import { clearStaging, createGroupDirectories, createLayout, inboxOf, layoutOf } from '../base/layout.ts'
import { acquire } from '../base/lock.ts'
import { createLogger } from '../base/logger.ts'
import { createChanges } from '../base/metrics/changes.ts'
import { createMeter } from '../base/metrics/meter.ts'
import { refused } from '../base/outcome.ts'
import { createOwners, ownerRule } from '../base/owners.ts'
import { createOwnership } from '../base/ownership.ts'
import { createRetries } from '../base/retry.ts'
import { version } from '../base/version.ts'
import { createAttachments } from '../chat/attachments/attachments.ts'
import { createChats } from '../chat/chats.ts'
import { createOutbox } from '../chat/outbox/outbox.ts'
import { createSaidTodos } from '../chat/said-todos.ts'
import { createRateLimit } from '../commands/policy/rate.ts'
import type { Config } from '../config.ts'
import { createContexts } from '../guard/contexts.ts'
import { taintOf } from '../guard/guard.ts'
import { viewFor } from '../guard/withheld.ts'
import type { CommandEvent } from '../intake/command-event.ts'
import { createIntake } from '../intake/intake.ts'
import { createReboot } from '../intake/reboot.ts'
import { type UnregisteredInboxes, watchUnregisteredInboxes } from '../intake/unregistered-inboxes.ts'
import { warmUp } from '../intake/warm-up.ts'
import { createEffects } from '../outcomes/effects.ts'
import { createReplies } from '../outcomes/replies.ts'
import { createSnapshots } from '../outcomes/snapshots.ts'
import { createDeploys } from '../plugins/deploy/deploys.ts'
import { isFor, type Supervisor } from '../plugins/deploy/supervised.ts'
import { createWiper } from '../runs/wipe.ts'
import { inside } from '../sandboxes/mounts.ts'
import { type Catalogue, createCatalogue, digestOf, listingFor } from '../services/catalogue.ts'
import { createRequestQueue, type RequestQueue } from '../services/request-queue.ts'
import { sweepUnread } from '../services/unread.ts'
import { createPositions } from '../store/positions.ts'
import { openStore } from '../store/sqlite.ts'
import { textMessage } from '../store/text-message.ts'
import { handoverFile } from '../supervisor/handover.ts'
import { type OpenGuard, openGuard, rulesFrom } from './guard.ts'
import { openHostWork, rulesWithoutDaemon } from './host-work.ts'
import { createOperator } from './operator.ts'
import type { OpenRunsOptions } from './runs.ts'
import { openServices } from './services.ts'

export interface OpenOptions {
  /** false: only for a moment, to look or to change something; no file is taken */
  watch: boolean
  log?: Logger
  /** who starts this process again when it has ended; left out: nobody */
  supervision?: { supervisor: Supervisor; restart(code: number): void } | undefined
}

const pruneEveryMs = 60_000
/** while there is more than is kept */
const pruneAgainMs = 50
/** how long a large answer is given again to whoever asks again */
const largeAnswersMs = 3_600_000
const lockWaitMs = 3000
/** a command that has it for a moment must not make a new revision look broken */
const patientLockWaitMs = 15_000
/** More than finished files that may still lie in the spool: without its row, one would be executed again. */
const rowsNeeded = 200_000

/** Puts the parts together on a data directory, which is ours alone from here to `stop`. */
export async function openHost(config: Config, options: OpenOptions): Promise<Host> {
  const log = options.log ?? createLogger(config)
  // Modes are chosen where something is made. The stricter umask of a hardened service would lock the containers out.
  process.umask(0o022)
  const layout = layoutOf(config.data)
  createLayout(layout)
  const lock = await acquire(config.data, {
    waitMs: options.supervision ? patientLockWaitMs : lockWaitMs,
    purpose: options.watch ? 'daemon' : 'command',
  })
  clearStaging(layout)
  const fault = faultFromEnvironment(process.env.HATCHWAY_FAULT)
  const now = () => new Date()
  const retries = createRetries({ log, now: Date.now })
  const store = openStore({
    path: layout.database,
    durability: config.durability,
    prepare: options.watch,
    commits: retries,
  })
  const owners = createOwners(config, store)
  const ownership = createOwnership({ layout, owners, store, rule: ownerRule(config), log })
  const quarantine = createQuarantine({
    directory: layout.errors,
    staging: layout.staging,
    limitBytes: config.limits.errorBytes,
  })
  const { questionMs } = config.services
  const isGuarded = config.guard.enabled === 'yes'
  const snapshots = createSnapshots({
    layout,
    store,
    log,
    retries,
    fault,
    now,
    ...(isGuarded ? { view: (reader: Group) => viewOf(reader) } : {}),
    services: group =>
      catalogue && listingFor(catalogue, group, { questionMs, commands: works?.offersTo(group) ?? [] }),
  })
  const replies = createReplies({ layout, owners, log })
  const listeners = new Set<(event: CommandEvent) => void>()
  const answerListeners = new Set<(seq: number) => void>()
  const startedAt = now().toISOString()
  const meter = createMeter(Date.now())
  const changes = createChanges()
  let spool: Spool | undefined
  let agents: OpenRuns | undefined
  const rules = rulesFrom(config, {
    isOffline: folder =>
      agents?.choice.sandbox?.isolated === true && config.groups[folder]?.sandbox !== 'process',
  })
  const contexts = createContexts(store, rules)
  const viewOf = ({ folder, main }: Group) =>
    viewFor(taintOf(store.taints.of, rules, folder), store.taints.texts(main ? undefined : folder), rules)
  let guard: OpenGuard | undefined
  let catalogue: Catalogue | undefined
  let requestQueue: RequestQueue | undefined
  let works: HostWork | undefined
  const positions = createPositions(store)
  const attachments = options.watch
    ? createAttachments({
        config,
        layout,
        store,
        positions,
        owners,
        placeOf: folder => (isInside(folder) ? inside.group : join(layout.groups, folder)),
        ...(isGuarded
          ? {
              findSecrets: async (payload, about) =>
                guard ? guard.findSecrets(payload, about) : [{ kind: 'search_failed', where: 'payload' }],
            }
          : {}),
        apply: all => effects.apply(all),
        fault,
        log,
        now: Date.now,
      })
    : undefined
  /** whether the group's agent sees the host's directories under other names */
  const isInside = (folder: string) =>
    (config.groups[folder]?.sandbox ?? agents?.choice.sandbox?.name ?? config.agents.sandbox) !== 'process'
  const chats = options.watch
    ? createChats({
        store,
        files: attachments,
        config,
        retries,
        log,
        now: Date.now,
        kick: () => agents?.queue.kick(),
        stop: (group, by) => {
          if (agents?.queue.stopTurn(group.folder, by)) return
          store.agents.finishTurn({
            runId: '',
            group: group.folder,
            usedIds: [],
            sessionId: null,
            keepSession: false,
            message: textMessage(positions.next(), group, 'Nothing is running here.', Date.now()),
          })
          outbox?.kick()
        },
        requestQueue: () => requestQueue,
        ...(isGuarded
          ? { guard: { heldCommands: () => guard?.heldCommands, positions, said: () => outbox?.kick() } }
          : {}),
        todo: createSaidTodos({
          store,
          positions,
          limit: config.limits.openTodos,
          now: Date.now,
          changed: folder => {
            snapshots.todosChanged(folder)
            snapshots.settle(false)
            outbox?.kick()
          },
        }),
      })
    : undefined

  const groupAdded = (folder: string) => {
    const group = store.group(folder)
    if (!group) return
    try {
      createGroupDirectories(layout, group, owners(group.folder))
    } catch (error) {
      // The group is registered, and what else its batch asked for must not suffer; the spool says what is missing.
      const reason = error instanceof Error ? error.message : String(error)
      log.error({ group: folder, reason }, 'the directories of a group could not be created')
    }
    // It may have been watched as a stray, with other directories.
    spool?.remove(folder)
    spool?.add(inboxOf(layout, group))
  }
  const outbox = chats
    ? createOutbox({
        store,
        channels: chats.channels,
        log,
        intakeIsBusy: () => spool?.busy() ?? false,
        now: () => Date.now(),
        settled: chats.settled,
      })
    : undefined
  const effects = createEffects({
    spool: () => spool,
    replies,
    snapshots,
    outbox,
    quarantine,
    groupAdded,
    groupRemoved: folder => {
      requestQueue?.groupGone(folder)
      agents?.queue.kick()
    },
    sessions: () => agents?.queue,
    requests: () => requestQueue,
    tasksChanged: () => {
      changes.note('tasks')
      agents?.scheduler.kick()
    },
    groupsChanged: () => {
      changes.note('groups')
      chats?.groupsChanged()
    },
    log,
    fault,
  })
  const operator = createOperator({
    config,
    store,
    quarantine,
    effects,
    positions,
    host: () => works?.rules ?? rulesWithoutDaemon(config),
    now,
    adopt: (path, inbox, drop, name) =>
      spool ? spool.adopt(path, inbox, drop, name) : adoptLater(path, inbox, drop, name),
  })
  /** Without a daemon the file waits among the claimed ones, which the next daemon finishes first. */
  const adoptLater = (path: string, inbox: string, drop: string, name: string) => {
    const claims = createClaims({
      directory: layout.spool,
      fileLimit: config.limits.fileBytes,
      firstSeq: store.lastSeq() + 1,
    })
    claims.recover()
    const file = claims.adopt(path, inbox, drop, name)
    return typeof file === 'string' ? file : undefined
  }

  const host: Host = {
    config,
    store,
    quarantine,
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
    ...operator,
    clearTaint(group, context) {
      const was = store.taints.clear(group, context)
      effects.apply([{ kind: 'tasks_changed', folder: group }, { kind: 'groups_changed' }])
      return was
    },
    chats,
    agents: () => agents,
    services: () => catalogue && requestQueue && { catalogue, requestQueue: requestQueue },
    hostWork: () => works,
    mode: folder => spool?.mode(folder),
    isReady: () => false,
    retries,
    meter,
    changes,
    onAnswered(listener) {
      answerListeners.add(listener)
      return () => answerListeners.delete(listener)
    },
    start: async () => {},
    startAgents: async () => {},
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    async stop() {
      await spool?.stop()
      replies.stop()
      await outbox?.stop()
      snapshots.stop()
      quarantine.flush()
      store.close()
      lock.release()
    },
  }
  if (!options.watch) return host

  const known = createCatalogue({
    services: await openServices({ config, layout, environment: process.env, log }),
    labels: config.guard.labels,
    log,
    changed: () => snapshots.servicesAre(digestOf(known, questionMs)),
  })
  catalogue = known
  const handover = handoverFile(config.data)
  const { supervision } = options
  const isSupervised = supervision !== undefined && isFor(supervision.supervisor, handover)
  if (supervision && !isSupervised) log.warn('the supervisor looks after another data directory')
  const deploys = createDeploys({
    settings: config.deploy,
    handover,
    isSupervised,
    store,
    environment: process.env,
    restart: code => supervision?.restart(code),
    told: () => agents?.queue.kick(),
    log,
    fault,
    now: Date.now,
  })
  const worktrees =
    Object.keys(config.repos).length === 0
      ? undefined
      : (await import('../plugins/worktrees/worktrees.ts')).createWorktrees({
          config,
          layout,
          owners,
          audit: store.audit,
          isRegistered: folder => store.group(folder) !== undefined,
          merges: contexts.merges,
          tell: (folder, about, text) => {
            const group = store.group(folder)
            if (group) chats?.inbound.note(group, about, text)
          },
          fault,
          log,
        })
  const opened = openHostWork({
    config,
    layout,
    owners,
    store,
    effects,
    works: attachments ? [attachments.work] : [],
    worktrees,
    deploys,
    runOf: folder => agents?.queue.runOf(folder),
  })
  works = opened
  const requests = createRequestQueue({
    catalogue: known,
    work: opened.work,
    store: store.requests,
    group: store.group,
    replies,
    timezone: config.timezone,
    log,
    now: Date.now,
    held: (request, signal) => guard?.heldCommands.take(request, signal),
    isAsked: seq => chats?.approvals?.isAsked(seq) === true,
    answered: (request, outcome) => {
      effects.decided(request.seq, outcome)
      retries.inBackground('closing the card of a request that is over', () => {
        chats?.questions.over(request, outcome)
        chats?.approvals?.over(request, outcome)
      })
      guard?.read(request, outcome)
      meter.answered(request.seq, Date.now())
      for (const listener of answerListeners) listener(request.seq)
    },
  })
  requestQueue = requests
  const services = { catalogue: known, questionMs }
  if (isGuarded && chats?.approvals) {
    guard = openGuard({
      config,
      store,
      rules,
      requestQueue: () => requestQueue,
      effects,
      approvals: chats.approvals,
      work: opened.work,
      context: () => ({
        seq: positions.next(),
        now: now(),
        timezone: config.timezone,
        limits: config.limits,
        services,
        host: opened.rules,
      }),
      environment: process.env,
      retries,
      fault,
      log,
    })
  }
  const rate = createRateLimit({ perMinute: config.limits.commandsPerMinute })
  const reboot = createReboot(store)
  const intake = createIntake({
    config,
    store,
    positions,
    spool: () => running,
    effects,
    rate,
    log,
    fault,
    handledBefore: reboot.handledBefore,
    services,
    host: opened.rules,
    ...(guard ? { guard: rules } : {}),
    publish: event => {
      for (const listener of listeners) listener(event)
    },
    hasListeners: () => listeners.size > 0,
    announce: true,
    meter,
    now: Date.now,
  })
  const running = createSpool({
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
    consume: intake.consume,
    allowance: inbox => {
      const time = performance.now()
      const files = rate.allowance(inbox, time)
      return { files, retryMs: files > 0 ? 0 : rate.readyAt(inbox, time) - time }
    },
    report: report => onReport(report),
    fault,
  })
  spool = running

  const onReport = (report: Report) => {
    const { message, ...about } = report
    const serious = report.kind !== 'mode' && report.kind !== 'appeared' && report.kind !== 'claimable'
    log[serious ? 'warn' : 'info'](about, message)
    try {
      respond(report)
    } catch (error) {
      // Its directory may be locked, or the disk full: that is one group's trouble and must not end the host.
      log.error(
        { ...about, reason: error instanceof Error ? error.message : String(error) },
        'nothing could be done about it',
      )
    }
  }
  const respond = (report: Report) => {
    if (report.kind === 'overflow' && report.inbox !== undefined && report.count) {
      quarantine.count(
        report.inbox,
        'too_many_waiting',
        `More than ${config.limits.filesWaiting} files were waiting; this many of the newest were refused unread.`,
        report.count,
        now(),
      )
    }
    if (report.kind === 'missing' && report.inbox !== undefined) {
      const group = store.group(report.inbox)
      if (group) createGroupDirectories(layout, group, owners(group.folder))
    }
  }

  let stopped = false
  let started = false
  /** groups whose last run has left something in their directories that is not decided yet */
  const leaving = new Set<string>()
  /** What a run has asked for is judged by what that run has read, and before the next one begins. */
  const runIsOver = (folder: string) => {
    leaving.add(folder)
    const forget = () => {
      // What it had left in its directories is taken only now, and nobody waits for that either.
      requests.containerGone(folder)
      contexts.gone(folder)
      leaving.delete(folder)
      agents?.queue.kick()
    }
    running.whenDrained(folder, () => retries.inBackground('forgetting what a run has read', forget))
  }
  /** who waits for the end of a group's session */
  const ends = new Map<string, () => void>()
  const wiper = createWiper({
    layout,
    store,
    async endSession(folder) {
      const session = agents?.queue.running().find(({ group }) => group === folder)
      if (session && session.state !== 'idle') return false
      if (session) {
        const { promise, resolve } = Promise.withResolvers<void>()
        ends.set(folder, resolve)
        agents?.queue.close(folder, session.runId)
        await promise
      }
      await new Promise<void>(resolve => running.whenDrained(folder, resolve))
      // One that found its place taken would lie there afterwards.
      replies.clear(folder)
      return true
    },
    isBusy: folder => requests.open().some(({ group, kind }) => group === folder && kind === 'work'),
    renew: folder => effects.apply([{ kind: 'group_added', folder }]),
    log,
    fault,
    now: Date.now,
  })
  let strays: UnregisteredInboxes | undefined
  let unread: { stop(): void } | undefined
  let chores: NodeJS.Timeout | undefined

  return {
    ...host,
    status: () => ({ ...host.status(), ...intake.counts() }),
    isReady: () => started && !stopped,
    async start() {
      warmUp(config)
      for (const group of store.groups()) {
        running.add(inboxOf(layout, group))
      }
      strays = watchUnregisteredInboxes({
        ipc: layout.ipc,
        isRegistered: folder => store.group(folder) !== undefined,
        add: inbox => {
          running.remove(inbox.id)
          running.add(inbox)
        },
        failed: error => log.warn({ err: error }, 'ipc/ could not be looked through; it is tried again'),
      })
      const cleanlyStopped = store.meta('snapshots') === version
      store.setMeta('snapshots', '')
      attachments?.start()
      wiper.tidy()
      requests.resume()
      requests.runsGone()
      chats?.questions.mend()
      chats?.approvals?.mend()
      await running.start()
      started = true
      reboot.over()
      known
        .start()
        .catch(error => log.error({ err: error }, 'services could not be started'))
        .finally(() => requests.ready())
      unread = sweepUnread({ store, replies, unreadMs: config.services.unreadMs })
      // After a clean stop they are as they should be; a look at each is taken all the same, in no hurry.
      snapshots.everything(!cleanlyStopped)
      outbox?.kick()
      const doChores = () => {
        let more = false
        try {
          quarantine.flush()
          more = store.prune({
            ...config.keep,
            commands: Math.max(config.keep.commands, rowsNeeded),
            messageBytes: config.limits.messageBytes,
          })
          more = store.requests.prune(Date.now() - largeAnswersMs) || more
          more =
            store.audit.prune({ entries: config.keep.audit, days: config.keep.auditDays }, Date.now()) || more
        } catch (error) {
          log.error({ err: error }, 'tidying up failed; it is tried again in a minute')
        }
        chores = setTimeout(doChores, more ? pruneAgainMs : pruneEveryMs)
      }
      chores = setTimeout(doChores, pruneEveryMs)
    },
    runTask: id =>
      agents?.scheduler.runNow(id) ?? {
        ok: false,
        error: refusal('unavailable', 'No agents are run here.'),
      },
    async wipeGroup(folder) {
      // Containers that others start may be writing at this moment.
      if (!agents) {
        return refused(
          'unavailable',
          'This host runs no agents, so it cannot know whether one is at work. Stop the container, remove its folder, and use taints clear.',
        )
      }
      const outcome = await wiper.wipe(folder)
      changes.note('groups')
      agents.queue.kick()
      return outcome
    },
    async startAgents() {
      await chats?.connect()
      if (stopped) return
      if (config.agents.enabled === 'no') return ownership.settleAll()
      // Loaded only where agents are run.
      const { openRuns: openAgents } = await import('./runs.ts')
      const agentOptions: OpenRunsOptions = {
        config,
        layout,
        store,
        positions,
        owners,
        typing: (jid, on) => chats?.typing(jid, on),
        said: () => outbox?.kick(),
        begins: (folder, run) => {
          contexts.begins(folder, { ...run, repo: worktrees?.of(folder)?.repo })
          snapshots.showServices(folder)
        },
        cutOff: (group, runId, by) =>
          retries.inBackground('telling an agent that its turn was stopped', () =>
            chats?.inbound.note(
              group,
              `stopped:${runId}`,
              `${by} stopped your last turn before it was finished. What you had done until then stays done.`,
            ),
          ),
        waitsForPeople: requests.waitsForPeople,
        turnStopped: folder => {
          requests.turnStopped(folder)
          const isAtWork = () =>
            agents?.queue.running().some(({ group, state }) => group === folder && state === 'working')
          // Its next turn may have begun meanwhile, and somebody waits for that one.
          running.whenDrained(folder, () => isAtWork() || requests.turnStopped(folder))
        },
        gone: folder => {
          requests.containerGone(folder)
          replies.clear(folder)
          ends.get(folder)?.()
          ends.delete(folder)
          runIsOver(folder)
        },
        decided: folder => new Promise(resolve => running.whenDrained(folder, resolve)),
        mayBegin: folder => !leaving.has(folder) && !wiper.isWiping(folder),
        tasksChanged: folder => {
          changes.note('tasks')
          changes.note('jobs')
          snapshots.tasksChanged(folder)
          snapshots.settle(false)
        },
        todosChanged: folder => {
          snapshots.todosChanged(folder)
          snapshots.settle(false)
        },
        modelChanged: () => changes.note('status'),
        worktrees,
        retries,
        settle: ownership.settle,
        log,
      }
      const opened = await retries.untilStored('starting agents', () => openAgents(agentOptions))
      if (stopped) return opened.stop()
      agents = opened
      opened.scheduler.start()
      // After runs that an earlier process had left are ended, and before any begins that has not waited for it.
      ownership.settleAll()
      opened.queue.kick()
    },
    async stop() {
      stopped = true
      retries.stop()
      clearTimeout(chores)
      attachments?.stop()
      strays?.stop()
      await chats?.disconnect()
      await deploys.stop()
      await ownership.stop()
      await agents?.stop()
      await worktrees?.stop()
      unread?.stop()
      await requests.stop()
      await guard?.stop()
      await known.stop()
      snapshots.flush()
      store.setMeta('snapshots', version)
      await host.stop()
    },
  }
}
