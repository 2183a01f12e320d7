import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { announcedSocket } from '../../../host/src/api/socket.ts'
import { createLayout, layoutOf } from '../../../host/src/base/layout.ts'
import { overSocket } from '../../../host/src/client/over-socket.ts'
import { openStore } from '../../../host/src/store/sqlite.ts'
import { openInstallation } from '../daemon/installation.ts'
import type { Finding } from '../report.ts'
import { account, accountAfterStop, doctorOf } from './accounting.ts'
import type { AgentsOrder } from './agents.process.ts'
import { median } from './flatness.ts'
import type { SoakOptions } from './options.ts'
import type { PeopleOrder } from './people.process.ts'
import { agentUid, configFor, type Kept, keptFor, planGroups, type SoakGroup } from './plan.ts'
import { type Sample, sampleOf } from './sampling.ts'
import type { FromAgents, FromPeople, Heard, Sent } from './traffic.ts'

export interface SoakResult {
  samples: readonly Sample[]
  kept: Kept
  /** whether nothing was lost, doubled or left behind */
  accounts: readonly Finding[]
  sent: readonly Sent[]
  heard: Heard
}

export interface SoakHooks {
  /** ends it early */
  signal: AbortSignal
  progress(line: string): void
}

/** As many samples as a table can tell of, and none so near to the next that looking is what is measured. */
const sampleEveryMs = ({ minutes }: SoakOptions) => Math.min(15_000, Math.max(1000, (minutes * 60_000) / 120))
const progressEveryMs = 10_000

export async function soak(options: SoakOptions, hooks: SoakHooks): Promise<SoakResult> {
  const { signal, progress } = hooks
  const closing: (() => Promise<void> | void)[] = []
  try {
    return await run(options, signal, progress, close => closing.push(close))
  } finally {
    for (const close of closing.reverse()) await close()
  }
}

async function run(
  options: SoakOptions,
  signal: AbortSignal,
  progress: (line: string) => void,
  atEnd: (close: () => Promise<void> | void) => void,
): Promise<SoakResult> {
  const kept = keptFor(options)
  const groups = planGroups(options.groups)
  const rig = mkdtempSync(join(tmpdir(), 'hatchway-soak-'))
  atEnd(() => rmSync(rig, { recursive: true, force: true }))
  const config = join(rig, 'hatchway.config.mjs')
  writeFileSync(config, `export default ${JSON.stringify(configFor(options, kept))}\n`)

  progress(`a daemon with a journal of ${options.journal} commands and ${groups.length} groups is made ready`)
  const installation = await openInstallation({
    sandbox: 'bubblewrap',
    environment: () => ({ HATCHWAY_WEB_ENABLED: 'yes', HATCHWAY_CONFIG: config, HATCHWAY_RIG_DIR: rig }),
    before: data => fillJournal(data, options.journal),
    atEnd,
  })
  const { data } = installation
  const pid = installation.daemon()?.pid ?? -1
  const link = await linkOf(() => installation.daemon()?.output() ?? '')
  await register(data, groups)
  const doctorBefore = await doctorOf(installation.hatchway)

  const latencies: number[] = []
  const chatLatencies: number[] = []
  const posted = new Map<number, number>()
  const share = Math.max(1, Math.min(2, availableParallelism() - 1))
  const agents = Array.from({ length: share }, (_, i) => {
    const order: AgentsOrder = {
      process: i,
      data,
      groups: groups.filter((group, place) => (group.lives === 'main' ? i === 0 : place % share === i)),
      rate: options.rate / share,
      only: options.only,
      refusing: kept.refusing,
      seed: options.seed + i,
      uid: agentUid,
    }
    return begin<FromAgents, Sent>('agents.process.ts', order, 'sent', atEnd, message => {
      if (message.kind !== 'tick') return
      latencies.push(...message.latencies)
      posted.set(i, message.posted)
    })
  })
  const order: PeopleOrder = {
    data,
    link,
    jids: groups.filter(({ lives }) => lives === 'inhabited').map(({ jid }) => jid),
    rate: options.chats,
    seed: options.seed + 100,
  }
  const people = begin<FromPeople, Heard>('people.process.ts', order, 'heard', atEnd, message => {
    if (message.kind === 'chats') chatLatencies.push(...message.latencies)
  })

  const samples: Sample[] = []
  const processes = [...agents, people]
  const ended = Promise.race(processes.map(({ died }) => died))
  await Promise.race([Promise.all(processes.map(({ ready }) => ready)), ended])
  for (const { child } of processes) child.send('begin')
  const startedAt = performance.now()
  const endsAt = startedAt + options.minutes * 60_000
  let toldAt = 0
  const look = async () => {
    const sample = await sampleOf(pid, data)
    const before = samples.at(-1)
    const load = before
      ? ((sample.cpu ?? 0) - (before.cpu ?? 0)) / (((sample.at ?? 0) - (before.at ?? 0)) / 1000)
      : Number.NaN
    const sorted = latencies.splice(0).sort((a, b) => a - b)
    samples.push({
      ...sample,
      load,
      p50: median(sorted),
      p99: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN,
      chat: median(chatLatencies.splice(0)),
    })
  }
  while (performance.now() < endsAt && !signal.aborted) {
    const rest = Math.max(0, Math.min(sampleEveryMs(options), endsAt - performance.now()))
    await Promise.race([sleep(rest, undefined, { signal }).catch(() => {}), ended])
    if (signal.aborted) break
    await look()
    if (performance.now() - toldAt < progressEveryMs) continue
    toldAt = performance.now()
    progress(lineOf(samples.at(-1), (performance.now() - startedAt) / 1000, sum(posted)))
  }

  progress(`${sum(posted)} files were written; now for the last answers`)
  people.child.send('end')
  for (const { child } of agents) child.send('end')
  const sent = await Promise.all(agents.map(({ done }) => done))
  people.child.send({ kind: 'finish', sent })
  const heard = await people.done
  const accounts = await account({
    data,
    pid,
    rig,
    sent,
    heard,
    hatchway: installation.hatchway,
    doctorBefore,
  })
  progress('everything is accounted for; the daemon is stopped')
  await installation.daemon()?.stop()
  accounts.push(...(await accountAfterStop({ data, hatchway: installation.hatchway })))
  return { samples, kept, accounts, sent, heard }
}

const sum = (counts: ReadonlyMap<number, number>) => [...counts.values()].reduce((all, each) => all + each, 0)

function lineOf(sample: Sample | undefined, seconds: number, posted: number): string {
  const number = (name: string) => sample?.[name] ?? Number.NaN
  const minutes = `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`
  return [
    minutes,
    `${posted} files`,
    `rss ${(number('rss') / 1_048_576).toFixed(0)} MB`,
    `heap ${(number('heap') / 1_048_576).toFixed(0)} MB`,
    `${number('handles')} handles`,
    `${number('children')} processes`,
    `p50 ${number('p50').toFixed(2)} ms`,
    `p99 ${number('p99').toFixed(0)} ms`,
    `chat ${number('chat').toFixed(0)} ms`,
    `load ${(number('load') * 100).toFixed(0)} %`,
  ].join(' · ')
}

interface Begins<Last> {
  child: ChildProcess
  ready: Promise<void>
  done: Promise<Last>
  died: Promise<never>
}

/** A process of its own; `done` is the last thing it says. */
function begin<Message extends { kind: string }, Last extends Message>(
  file: string,
  order: object,
  lastKind: Last['kind'],
  atEnd: (close: () => void) => void,
  hear: (message: Message) => void,
): Begins<Last> {
  const child = fork(join(import.meta.dirname, file), [JSON.stringify(order)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  atEnd(() => void child.kill('SIGKILL'))
  const isLast = (message: Message): message is Last => message.kind === lastKind
  let over = false
  const ready = Promise.withResolvers<void>()
  const done = Promise.withResolvers<Last>()
  child.on('message', message => {
    const said = message as Message
    if (said.kind === 'ready') ready.resolve()
    hear(said)
    if (!isLast(said)) return
    over = true
    done.resolve(said)
  })
  const died = Promise.withResolvers<never>()
  child.once('exit', code => {
    if (over) return
    const reason = new Error(`${file} ended with ${code}`)
    died.reject(reason)
    done.reject(reason)
  })
  died.promise.catch(() => {})
  done.promise.catch(() => {})
  return { child, ready: ready.promise, done: done.promise, died: died.promise }
}

/** The journal as it is after years: what is added from now on, as much is forgotten. */
function fillJournal(data: string, commands: number): void {
  if (commands === 0) return
  const layout = layoutOf(data)
  createLayout(layout)
  const store = openStore({ path: layout.database, durability: 'process', prepare: false })
  const first = store.lastSeq() + 1
  store.transaction(transaction => {
    for (let seq = first; seq < first + commands; seq++) {
      transaction.insertCommand({
        seq,
        group: `g${String(seq % 500).padStart(4, '0')}`,
        directory: 'messages',
        file: `${1_769_900_000_000 + seq}-000000-5f3a9c01.json`,
        inode: seq,
        mtimeUs: 1_769_900_000_000_000 + seq,
        dialect: 'hatchway',
        type: 'send_message',
        requestId: `before-${seq}`,
        reply: { directory: 'responses', id: `before-${seq}`, shape: 'receipt' },
        outcome: { ok: true, result: { message_id: seq } },
        receivedAt: 1_769_900_000_000 + seq,
        tookUs: 500,
      })
    }
  })
  store.close()
}

async function register(data: string, groups: readonly SoakGroup[]): Promise<void> {
  const api = overSocket(announcedSocket(data))
  for (const { folder, jid, dialect, lives } of groups) {
    if (lives === 'main') continue
    const { status, text } = await api.request('POST', '/groups', {
      folder,
      jid,
      name: folder,
      main: false,
      dialect,
      requires_trigger: false,
    })
    if (status >= 300) throw new Error(`${folder} could not be registered: ${text}`)
  }
}

async function linkOf(output: () => string): Promise<string> {
  for (;;) {
    const link = /http:\/\/\S+\?token=\S+/.exec(output())?.[0]
    if (link !== undefined) return link
    await sleep(50)
  }
}
