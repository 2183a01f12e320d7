import { resolve } from 'node:path'
import type { Host } from '../api/host.ts'
import { inboxOf } from '../base/layout.ts'
import { refused } from '../base/outcome.ts'
import { version } from '../base/version.ts'
import { createChats } from '../chat/chats.ts'
import { createOutbox } from '../chat/outbox/outbox.ts'
import { createSaidTodos } from '../chat/said-todos.ts'
import { zoneOf } from '../config.ts'
import { findSharedMounts } from '../guard/shared-mounts.ts'
import { createIntake } from '../intake/intake.ts'
import { createReboot } from '../intake/reboot.ts'
import { watchUnregisteredInboxes } from '../intake/unregistered-inboxes.ts'
import { warmUp } from '../intake/warm-up.ts'
import { createServiceListings } from '../outcomes/service-listings.ts'
import { createWiper } from '../runs/wipe.ts'
import { commandListings, createCatalogue, digestOf, listingFor } from '../services/catalogue.ts'
import { loadPlugins } from '../services/plugins.ts'
import { createRequestQueue } from '../services/request-queue.ts'
import { createTodoService } from '../services/todos.ts'
import { sweepUnread } from '../services/unread.ts'
import { hostMessage } from '../store/text-message.ts'
import type { CommandEvent } from '../store/types.ts'
import { startChores } from './chores.ts'
import { isAskedIn, type OpenGuard, openGuard } from './guard.ts'
import type { DaemonKernel } from './kernel.ts'
import { createRunEnds } from './run-ends.ts'

/** Everything that takes files and answers them; `host` is what a process without a daemon offers. */
export async function openDaemon(kernel: DaemonKernel, host: Host): Promise<Host> {
  const { config, log, store, agents, effects, notices, plugins, retries, replies, snapshots, spool } = kernel
  const services = await openServices(kernel)
  const { catalogue, requests, guard } = services
  const chats = openChats(kernel, services)
  const outbox = createOutbox({
    store,
    channelOf: chats.channels.of,
    lookup: chats.lookup,
    log,
    intakeIsBusy: spool.busy,
    now: Date.now,
    settled: chats.settled,
  })
  const events = new Set<(event: CommandEvent) => void>()
  const answers = new Set<(seq: number) => void>()
  const reboot = createReboot(store)
  const intake = createIntake({
    ...kernel,
    services: services.rules,
    host: kernel.work.rules,
    handledBefore: reboot.handledBefore,
    ...(guard ? { guard: kernel.rules } : {}),
    publish: event => {
      for (const listener of events) listener(event)
    },
    hasListeners: () => events.size > 0,
    announce: true,
    now: Date.now,
  })
  const runEnds = createRunEnds(kernel, requests)
  const wiper = createWiper({
    writesElsewhere: findSharedMounts(config.groups).writes,
    ...kernel,
    endSession: runEnds.endSession,
    isBusy: folder => requests.open().some(({ group, kind }) => group === folder && kind === 'work'),
    renew: folder => effects.apply([{ kind: 'group_added', folder }]),
    now: Date.now,
  })
  connect(kernel, { ...services, chats, outbox, answers })
  effects.begin()
  if (config.agents.enabled === 'no') kernel.hooks.opened(undefined)
  let isStarted = false
  const running: { stop(): void }[] = []

  return {
    ...host,
    status: () => ({ ...host.status(), ...intake.counts() }),
    chats,
    agents: agents.runs,
    services: () => ({ catalogue, requestQueue: requests }),
    hostWork: () => kernel.work,
    mode: spool.mode,
    isReady: () => isStarted && !agents.isStopped(),
    subscribe(listener) {
      events.add(listener)
      return () => events.delete(listener)
    },
    onAnswered(listener) {
      answers.add(listener)
      return () => answers.delete(listener)
    },
    async start() {
      warmUp(config, kernel.commands)
      for (const group of store.groups()) spool.add(inboxOf(kernel.layout, group))
      running.push(watchUnregistered(kernel))
      const cleanlyStopped = store.meta('snapshots') === version
      store.setMeta('snapshots', '')
      kernel.attachments.start()
      wiper.tidy()
      requests.resume()
      requests.runsGone()
      chats.questions.mend()
      chats.approvals?.mend()
      await spool.start(intake.consume)
      isStarted = true
      reboot.over()
      catalogue
        .start()
        .catch(error => log.error({ err: error }, 'services could not be started'))
        .finally(() => requests.ready())
      running.push(sweepUnread({ store, replies, unreadMs: config.services.unreadMs, now: Date.now }))
      // After a clean stop they are as they should be; a look at each is taken all the same, in no hurry.
      snapshots.everything(!cleanlyStopped)
      outbox.kick()
      running.push(startChores(kernel))
    },
    runTask: id => agents.runs()?.scheduler.runNow(id) ?? refused('unavailable', 'No agents are run here.'),
    async wipeGroup(folder) {
      // Containers that others start may be writing at this moment.
      if (!agents.runs()) {
        return refused(
          'unavailable',
          'This host runs no agents, so it cannot know whether one is at work. Stop the container, remove its folder, and use taints clear.',
        )
      }
      const outcome = await wiper.wipe(folder)
      kernel.changes.note('groups')
      notices.publish({ kind: 'agent_called' })
      return outcome
    },
    async startAgents() {
      await chats.connect()
      if (agents.isStopped()) return
      if (config.agents.enabled === 'no') {
        await plugins.start()
        return kernel.ownership.settleAll()
      }
      // Loaded only where agents are run.
      const { startRuns } = await import('./start-runs.ts')
      await startRuns(kernel, { ...services, chats, runEnds, mayBegin: folder => !wiper.isWiping(folder) })
    },
    async stop() {
      agents.stop()
      kernel.signalStop()
      retries.stop()
      kernel.attachments.stop()
      for (const part of running) part.stop()
      await chats.disconnect()
      await kernel.ownership.stop()
      await agents.runs()?.stop()
      await requests.stop()
      await guard?.stop()
      await catalogue.stop()
      snapshots.flush()
      store.setMeta('snapshots', version)
      services.listings.stop()
      await kernel.stop(outbox.stop)
    },
  }
}

type Services = Awaited<ReturnType<typeof openServices>>

/** What agents can ask for, where it waits for its answer, and who looks at it first. */
async function openServices(kernel: DaemonKernel) {
  const { config, log, store, commands, positions, notices, plugins, work } = kernel
  const { questionMs } = config.services
  const catalogue = createCatalogue({
    services: [
      createTodoService({ limit: config.limits.openTodos }),
      ...plugins.services,
      ...(await loadPlugins(
        config.services.plugins.map(path => resolve(path)),
        log,
      )),
    ],
    labels: config.guard.labels,
    log,
    changed: () => notices.publish({ kind: 'services_changed' }),
  })
  const rules = { catalogue, questionMs }
  const listings = createServiceListings({
    ...kernel,
    listing: group =>
      listingFor(catalogue, group, {
        questionMs,
        commands: work.offersTo(group),
        more: commandListings(commands.all(), group),
      }),
  })
  const requests = createRequestQueue({
    catalogue,
    work: work.work,
    store: store.requests,
    group: store.group,
    replies: kernel.replies,
    timezone: folder => zoneOf(config, folder),
    log,
    now: Date.now,
    held: (request, signal) => notices.publish({ kind: 'command_held', request, signal }),
    isAsked: isAskedIn(store),
    answered: (request, outcome) => notices.publish({ kind: 'request_answered', request, outcome }),
  })
  const guard: OpenGuard | undefined =
    kernel.secrets &&
    openGuard({
      ...kernel,
      secrets: kernel.secrets,
      requestQueue: requests,
      workFor: work.workFor,
      context: folder => ({
        seq: positions.next(),
        now: kernel.now(),
        timezone: zoneOf(config, folder),
        limits: config.limits,
        services: rules,
        host: work.rules,
      }),
      environment: process.env,
    })
  return { catalogue, rules, listings, requests, guard }
}

/** What people say and are told. */
function openChats(kernel: DaemonKernel, { requests, guard }: Services) {
  const { config, log, store, positions, retries, effects, notices, agents } = kernel
  const said = () => notices.publish({ kind: 'message_queued' })
  return createChats({
    store,
    files: kernel.attachments,
    channels: kernel.plugins.channels,
    registry: kernel.channels,
    positions,
    said,
    perform: kernel.operator.perform,
    renamed: () => effects.apply([{ kind: 'groups_changed' }]),
    config,
    retries,
    log,
    now: Date.now,
    kick: () => notices.publish({ kind: 'agent_called' }),
    stop: (group, by) => {
      if (agents.runs()?.queue.stopTurn(group.folder, by)) return
      const word = hostMessage(positions.next(), group, 'Nothing is running here.', Date.now())
      store.transaction(transaction => transaction.insertMessage(word))
      said()
    },
    requestQueue: requests,
    ...(guard ? { guard } : {}),
    todo: createSaidTodos({
      store,
      positions,
      limit: config.limits.openTodos,
      now: Date.now,
      changed: folder => effects.apply([{ kind: 'todos_changed', folder }, { kind: 'message_queued' }]),
    }),
  })
}

/** Who acts on what the others tell. Handlers of one kind run in the order in which they stand here. */
function connect(
  { config, store, notices, effects, retries, meter }: DaemonKernel,
  parts: Services & {
    chats: ReturnType<typeof openChats>
    outbox: { kick(): void }
    answers: ReadonlySet<(seq: number) => void>
  },
): void {
  const { catalogue, listings, requests, guard, chats, outbox, answers } = parts
  notices.on('message_queued', outbox.kick)
  notices.on('groups_changed', chats.groupsChanged)
  notices.on('group_added', ({ folder }) => listings.show(folder))
  notices.on('group_removed', ({ folder }) => requests.groupGone(folder))
  notices.on('services_changed', () => listings.changed(digestOf(catalogue, config.services.questionMs)))
  notices.on('request_stored', ({ request }) => requests.accept(request))
  notices.on('request_over', ({ seq, outcome }) => requests.over(seq, outcome))
  notices.on('command_held', ({ request, signal }) => guard?.heldCommands.take(request, signal))
  notices.on('approval_needed', ({ request, held, why, hasSecrets }) =>
    chats.approvals?.ask(request, held, why, hasSecrets),
  )
  notices.on('request_answered', ({ request, outcome }) => {
    effects.decided(request.seq, outcome)
    retries.inBackground('closing the card of a request that is over', () => {
      chats.questions.over(request, outcome)
      chats.approvals?.over(request, outcome)
    })
    guard?.read(request, outcome)
    meter.answered(request.seq, Date.now())
    for (const listener of answers) listener(request.seq)
  })
  notices.on('agent_told', ({ folder, about, text }) => {
    const group = store.group(folder)
    if (group) chats.inbound.note(group, about, text)
  })
}

const watchUnregistered = ({ layout, store, spool, log }: DaemonKernel) =>
  watchUnregisteredInboxes({
    ipc: layout.ipc,
    isRegistered: folder => store.group(folder) !== undefined,
    add: inbox => {
      spool.remove(inbox.id)
      spool.add(inbox)
    },
    failed: error => log.warn({ err: error }, 'ipc/ could not be scanned; retrying'),
  })
