import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Burst, type Crash, hasty, measureBurst, measureCrash, patient } from '../burst.ts'
import { type Child, startChild } from '../children.ts'
import { interleave } from '../contenders.ts'
import { removeTree } from '../disk.ts'
import { absent, count, microseconds, perSecond, times } from '../format.ts'
import { latencyOf, type Mailbox, type Method, pollSamples } from '../mailbox.ts'
import {
  bareWatch,
  chokidarMethod,
  halfSecondPoller,
  naiveHandler,
  nativeMethod,
  secondPoller,
} from '../peers/files.ts'
import { hatchwayMethod, hatchwayName } from '../peers/hatchway.ts'
import { drainInLoop, loopName } from '../peers/loop.ts'
import { natsMethod } from '../peers/nats.ts'
import { redisMethod } from '../peers/redis.ts'
import { socketMethod } from '../peers/socket.ts'
import { sqliteSecond, sqliteTenth } from '../peers/sqlite.ts'
import { residentMegabytes, threadSeconds } from '../proc.ts'
import type { Row, RowResult, Setting, Sheet } from '../row.ts'
import { median, pairedRatio, type Rounds } from '../statistics.ts'

const methods: readonly Method[] = [
  hatchwayMethod('process'),
  hatchwayMethod('full'),
  secondPoller,
  halfSecondPoller,
  naiveHandler,
  bareWatch,
  chokidarMethod,
  sqliteSecond,
  sqliteTenth,
  redisMethod,
  natsMethod,
  socketMethod,
  nativeMethod,
]
const own = [hatchwayName('process'), hatchwayName('full')]
const settle = 3000

interface Idle {
  /** of a core */
  percent: number
  megabytes: number
}

interface Found {
  latency?: Rounds
  idle?: Idle
  bursts: Burst[]
  crash?: Crash
}

/** All at once: those that do nothing do not disturb each other. */
const watchIdle = async (mailboxes: ReadonlyMap<string, Mailbox>, seconds: number) => {
  await sleep(settle)
  const used = ({ pids }: Mailbox) => pids().reduce((sum, pid) => sum + threadSeconds(pid), 0)
  const before = new Map([...mailboxes].map(([name, mailbox]) => [name, used(mailbox)]))
  const begin = performance.now()
  await sleep(seconds * 1000)
  const passed = (performance.now() - begin) / 1000
  return new Map<string, Idle>(
    [...mailboxes].map(([name, mailbox]) => [
      name,
      {
        percent: ((used(mailbox) - (before.get(name) ?? 0)) / passed) * 100,
        megabytes: mailbox.pids().reduce((sum, pid) => sum + residentMegabytes(pid), 0),
      },
    ]),
  )
}

const quiet = async (directory: string, producer: Child, { quick, say }: Setting) => {
  const base = join(directory, 'idle')
  mkdirSync(base)
  const mailboxes = new Map<string, Mailbox>()
  const missing: string[] = []
  for (const { name, open } of methods) {
    const mailbox = await open(base, { producer })
    if ('missing' in mailbox) missing.push(mailbox.missing)
    else mailboxes.set(name, mailbox)
  }
  const contenders = methods.flatMap(({ name, every }) => {
    const mailbox = mailboxes.get(name)
    return mailbox === undefined ? [] : [{ every, contender: latencyOf(name, mailbox, every) }]
  })
  const told = contenders.filter(({ every }) => every === undefined).map(({ contender }) => contender)
  const looking = contenders.filter(({ every }) => every !== undefined).map(({ contender }) => contender)
  const latencies = new Map([
    ...(await interleave(told, { rounds: quick ? 5 : 15, samples: quick ? 60 : 100, say })),
    ...(await interleave(looking, { rounds: quick ? 1 : 3, samples: pollSamples, say })),
  ])
  const seconds = quick ? 5 : 30
  say(`all of them idle for ${seconds} s`)
  const idles = await watchIdle(mailboxes, seconds)
  for (const { contender } of contenders) await contender.end()
  await removeTree(base)
  return { latencies, idles, missing, present: methods.filter(({ name }) => mailboxes.has(name)) }
}

/** The loop has nobody who wakes it, and nothing to lose: only how fast it goes is known of it. */
const drainLoop = async (directory: string, producer: Child, posted: number): Promise<Burst> => {
  const directories = [join(directory, 'loop', 'messages')]
  await producer.call('fill', { directories, count: posted }, 300)
  const { perSecond: rate } = await drainInLoop(directories, join(directory, 'loop'))
  await removeTree(join(directory, 'loop'))
  return { posted, lost: 0, perSecond: rate }
}

const ratios = (
  found: ReadonlyMap<string, Found>,
  name: string,
  of: (it: Found, own: Found) => number | undefined,
) =>
  own
    .map(hatchway => {
      const [mine, theirs] = [found.get(hatchway), found.get(name)]
      const ratio = mine && theirs ? of(theirs, mine) : undefined
      return ratio === undefined ? absent : times(ratio)
    })
    .join(' / ')

const rateOf = ({ bursts }: Found) =>
  bursts.length === 0 ? undefined : median(bursts.map(burst => burst.perSecond))

const latencyRatio = (it: Found, mine: Found) =>
  it.latency &&
  mine.latency &&
  (it.latency.medians.length === mine.latency.medians.length
    ? pairedRatio(it.latency.medians, mine.latency.medians)
    : it.latency.p50 / mine.latency.p50)

const rateRatio = (it: Found, mine: Found) => {
  const [theirs, rate] = [rateOf(it), rateOf(mine)]
  return theirs === undefined || rate === undefined ? undefined : theirs / rate
}

const sheetOf = (found: ReadonlyMap<string, Found>, posted: number, waiting: number): Sheet => ({
  title: 'Ways to hand over a message',
  heads: [
    'method',
    'idle latency p50',
    'p99',
    '× Hatchway process / full',
    `lost of ${count(posted)}`,
    'drained',
    '× Hatchway process / full',
    'killed: lost',
    'twice',
    'idle CPU',
    'memory',
  ],
  rows: [...methods.map(({ name }) => name), loopName].map(name => {
    const it: Found = found.get(name) ?? { bursts: [] }
    const rate = rateOf(it)
    const worst = it.bursts.toSorted((a, b) => b.lost - a.lost)[0]
    const lost = worst === undefined || name === loopName ? absent : count(worst.lost)
    const fewer = worst !== undefined && worst.posted < posted ? ` of ${count(worst.posted)}` : ''
    return [
      name,
      it.latency === undefined ? absent : microseconds(it.latency.p50),
      it.latency === undefined ? absent : microseconds(it.latency.p99),
      ratios(found, name, latencyRatio),
      `${lost}${fewer}`,
      rate === undefined ? absent : perSecond(rate),
      ratios(found, name, rateRatio),
      it.crash === undefined ? absent : count(it.crash.lost),
      it.crash === undefined ? absent : count(it.crash.twice),
      it.idle === undefined ? absent : `${it.idle.percent.toFixed(2)} %`,
      it.idle === undefined ? absent : `${count(it.idle.megabytes)} MB`,
    ]
  }),
  notes: [
    ...methods.map(({ name, how }) => `${name}: ${how}.`),
    `${loopName}: lists, reads, parses and renames, once; nobody wakes it.`,
    `Lost: ${count(posted)} messages (fewer where they could not be written within some seconds) posted while the receiver was busy, and never handled. Drained: from then on.`,
    `Killed: the receiving side, server included, with SIGKILL while it handled ${count(waiting)} waiting messages, and begun again. Handled twice is one that the receiver had written down before, and again after it.`,
    'Idle CPU and memory: of all processes of the receiving side, server included; percent of one core.',
  ],
})

const run = async (setting: Setting): Promise<RowResult> => {
  const { directory, quick, say } = setting
  const posted = quick ? 6000 : 40_000
  const waiting = quick ? 3000 : 10_000
  const patience = quick ? hasty : patient
  const rounds = quick ? 1 : 3
  const producer = startChild(new URL('../producer.process.ts', import.meta.url), 'producer')
  const { latencies, idles, missing, present } = await quiet(directory, producer, setting)
  const found = new Map<string, Found>(
    present.map(({ name }) => {
      const [latency, idle] = [latencies.get(name), idles.get(name)]
      return [name, { bursts: [], ...(latency && { latency }), ...(idle && { idle }) }]
    }),
  )
  found.set(loopName, { bursts: [] })

  /** a fresh one, in a directory of its own */
  const withMailbox = async <T>(
    { name, open }: Method,
    ledger: string | undefined,
    measure: (mailbox: Mailbox) => Promise<T>,
  ): Promise<T> => {
    const base = join(directory, 'one')
    mkdirSync(base)
    const mailbox = await open(base, { producer, ...(ledger === undefined ? {} : { ledger }) })
    if ('missing' in mailbox) throw new Error(`${name}: ${mailbox.missing}`)
    const result = await measure(mailbox)
    await removeTree(base)
    return result
  }
  for (let round = 0; round < rounds; round++) {
    for (const method of present) {
      const burst = await withMailbox(method, undefined, mailbox =>
        measureBurst(mailbox, { ...patience, count: posted, every: method.every }),
      )
      found.get(method.name)?.bursts.push(burst)
      say(
        `${method.name}: lost ${count(burst.lost)} of ${count(burst.posted)}, ${perSecond(burst.perSecond)}`,
      )
    }
    found.get(loopName)?.bursts.push(await drainLoop(directory, producer, posted))
  }
  for (const method of present) {
    const ledger = join(directory, `${method.name.replaceAll(/\W+/g, '-')}.ledger`)
    const crash = await withMailbox(method, ledger, mailbox =>
      measureCrash(mailbox, ledger, { ...patience, count: waiting, every: method.every }),
    )
    Object.assign(found.get(method.name) ?? {}, { crash })
    say(
      `${method.name}: killed after ${count(crash.before)} of ${count(crash.posted)}, lost ${count(crash.lost)}, twice ${count(crash.twice)}`,
    )
  }
  await producer.end()
  const broken = own.flatMap(name => {
    const it = found.get(name)
    const lost = Math.max(0, ...(it?.bursts ?? []).map(burst => burst.lost)) + (it?.crash?.lost ?? 0)
    const twice = it?.crash?.twice ?? 0
    return lost > 0 || twice > 0 ? [`${name} lost ${lost}, did ${twice} twice`] : []
  })
  return {
    lines: [],
    sheets: [sheetOf(found, posted, waiting)],
    figures: Object.fromEntries(found),
    missing,
    ...(broken.length > 0 ? { broken: broken.join('; ') } : {}),
  }
}

export const methodsRow: Row = {
  name: 'methods',
  title: 'all ways to hand over a message, side by side',
  run,
}
