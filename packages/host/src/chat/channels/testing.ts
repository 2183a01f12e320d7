import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commandSchema, type Group, type Outcome } from '@hatchway/protocol'
import { pino } from 'pino'
import { onTestFinished } from 'vitest'
import { createRetries } from '../../base/retry.ts'
import type { Effect } from '../../commands/effects.ts'
import { kernelCommands } from '../../commands/index.ts'
import { createCommands } from '../../commands/registry.ts'
import type { Service } from '../../commands/service-tools.ts'
import type { HostRules } from '../../commands/types.ts'
import { type ConfigInput, configSchema } from '../../config.ts'
import type { GuardRules } from '../../guard/guard.ts'
import { createCatalogue } from '../../services/catalogue.ts'
import type { HeldCommands } from '../../services/held.ts'
import { createRequestQueue } from '../../services/request-queue.ts'
import { createPositions, type Positions } from '../../store/positions.ts'
import { openStore } from '../../store/sqlite.ts'
import { groupOf as storedGroup } from '../../store/testing.ts'
import type { Store } from '../../store/types.ts'
import type { Attachments } from '../attachments/attachments.ts'
import { createChats } from '../chats.ts'
import type { ChatEntry } from '../history.ts'
import type { Channel, ChannelHost, Incoming } from './types.ts'

export const groupOf = (folder: string, more: Partial<Group> = {}): Group =>
  storedGroup(folder, { jid: `chat:${folder}`, ...more })

const nobody = () => Promise.reject(new Error('nobody is here'))

/** A host that takes what is said, and nothing else unless it is said how. */
export const hostWith = (more: Partial<ChannelHost> = {}): ChannelHost => ({
  receive: async () => ({ ok: true, id: 1, status: 'waiting' }),
  choose: nobody,
  decide: nobody,
  changed: nobody,
  reacted: nobody,
  knows: () => {},
  moved: nobody,
  takeFile: nobody,
  mayShowElsewhere: () => true,
  recall: () => undefined,
  remember: () => {},
  ...more,
})

/** What Ann says in a chat, unless it is said of somebody else. */
export const saying = (jid: string, text: string, more: Partial<Incoming> = {}): Incoming => ({
  jid,
  sender: 'ann',
  senderName: 'Ann',
  text,
  at: Date.now(),
  ...more,
})

/** A store with these groups in a directory that goes with the test; one that was filled before stays as it is. */
export async function openGroups(
  groups: readonly Group[],
  directory = mkdtempSync(join(tmpdir(), 'hatchway-chats-')),
) {
  const store = openStore({ path: join(directory, 'hatchway.db'), durability: 'process' })
  let isOpen = true
  /** as a killed process leaves it: nothing more is stored */
  const kill = () => {
    if (isOpen) store.close()
    isOpen = false
  }
  onTestFinished(() => {
    kill()
    rmSync(directory, { recursive: true, force: true })
  })
  if (store.groups().length === 0) {
    store.transaction(transaction => {
      for (const group of groups) transaction.insertGroup(group)
    })
  }
  return { directory, store, kill, isOpen: () => isOpen }
}

/** Chats, request queue and store as in a host, without files: what would be put into a group's directory is written down. */
export async function openChats(options: {
  groups: readonly Group[]
  directory?: string | undefined
  config?: ConfigInput | undefined
  questionMs?: number | undefined
  services?: readonly Service[]
  channels?: readonly Channel[]
  /** there is something to deliver */
  said?: () => void
  /** what goes along with messages */
  files?: (store: Store, positions: Positions) => Attachments
  /** left out: nothing is held */
  guard?: { rules: GuardRules; heldCommands: HeldCommands }
}) {
  const { groups, questionMs = 600_000, services = [], channels = [], guard } = options
  const { directory, store, kill, isOpen } = await openGroups(groups, options.directory)
  const log = pino({ level: 'silent' })
  const positions = createPositions(store)
  const sent: { id: string; outcome: Outcome }[] = []
  let kicks = 0
  const catalogue = createCatalogue({ services, log, changed: () => {} })
  const requestQueue = createRequestQueue({
    catalogue,
    store: store.requests,
    group: store.group,
    replies: {
      send: (_, { id }, outcome, placed) => {
        sent.push({ id, outcome })
        placed()
      },
      progress: () => {},
      endProgress: () => {},
    },
    timezone: () => 'UTC',
    log,
    now: Date.now,
    held: (request, signal) => guard?.heldCommands.take(request, signal),
    isAsked: seq => chats.approvals?.isAsked(seq) === true,
    answered: (request, outcome) => {
      chats.questions.over(request, outcome)
      chats.approvals?.over(request, outcome)
    },
  })
  const chats = createChats({
    store,
    config: configSchema.parse({ timezone: 'UTC', ...options.config }),
    retries: createRetries({ log: log, now: Date.now }),
    log,
    now: Date.now,
    kick: () => {
      kicks++
    },
    requestQueue,
    positions,
    said: options.said ?? (() => {}),
    perform: async () => ({ ok: true, result: {} }),
    ...(options.files && { files: options.files(store, positions) }),
    ...(guard && { guard }),
    channels,
  })
  onTestFinished(async () => {
    if (isOpen()) await requestQueue.stop()
  })
  const shown: ChatEntry[] = []
  chats.feed.subscribe(({ event }) => {
    if (event.kind === 'entry') shown.push(event.entry)
  })
  const apply = (effects: readonly Effect[]) => {
    for (const effect of effects) {
      if (effect.kind === 'request_stored') requestQueue.accept(effect.request)
      if (effect.kind === 'request_over') requestQueue.over(effect.seq, effect.outcome)
      if (effect.kind === 'group_removed') requestQueue.groupGone(effect.folder)
    }
  }
  const context = () => ({
    seq: positions.next(),
    now: new Date(),
    timezone: 'UTC',
    limits: { ...configSchema.parse({}).limits, openTasks: 10, openRequests: 20 },
    services: { catalogue, questionMs },
  })

  let last = 1000 + store.lastSeq()
  /** what an agent asks for, as it would come through the hatch; the outcome is null where the answer follows */
  const command = async (
    folder: string,
    /** left out: nobody waits for an answer */
    id: string | undefined,
    content: { type: string; payload: unknown },
    /** the run that asks; left out: none */
    run = '',
  ) => {
    const effects: Effect[] = []
    const seq = ++last
    const outcome = store.transaction(transaction => {
      const group = transaction.group(folder)
      if (!group) throw new Error(`no group ${folder}`)
      const reply = id === undefined ? null : ({ id, directory: 'responses', shape: 'receipt' } as const)
      const result = createCommands(kernelCommands).perform(commandSchema.parse(content), {
        ...context(),
        transaction,
        actor: { kind: 'group', group },
        request: { seq, reply },
        ...(guard && { guard: guard.rules }),
        ...(run !== '' && { host: hostIn(run) }),
        effect: effect => effects.push(effect),
      })
      transaction.insertCommand({
        seq,
        group: folder,
        directory: 'tasks',
        file: `${id}.json`,
        inode: seq,
        mtimeUs: 0,
        dialect: 'hatchway',
        type: content.type,
        requestId: id ?? null,
        reply,
        outcome: result,
        receivedAt: Date.now(),
        tookUs: 0,
      })
      return result
    })
    apply(effects)
    return { seq, outcome }
  }
  const jidOf = (folder: string) => groups.find(group => group.folder === folder)?.jid ?? `chat:${folder}`
  return {
    directory,
    store,
    positions,
    chats,
    catalogue,
    requestQueue,
    apply,
    context,
    command,
    jidOf,
    kill,
    /** every card and message that whoever looks has seen appear or change */
    shown,
    kicks: () => kicks,
    sent: (id: string) => sent.filter(each => each.id === id).map(({ outcome }) => outcome),
    say: (
      folder: string,
      text: string,
      { channel = 'test', ...more }: Partial<Incoming> & { channel?: string } = {},
    ) => chats.inbound.receive(channel, saying(jidOf(folder), text, more)),
  }
}

const hostIn = (id: string): HostRules => ({
  runOf: () => ({ id, kind: 'chat', occurrenceId: null, isByDeploy: false }),
  workMs: () => undefined,
  finishing: () => undefined,
  isHarmless: () => false,
})
