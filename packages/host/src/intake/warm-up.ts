import type { ClaimedFile } from '@hatchway/spool'
import { pino } from 'pino'
import { createMeter } from '../base/metrics/meter.ts'
import type { Commands } from '../commands/registry.ts'
import type { Config } from '../config.ts'
import { createPositions } from '../store/positions.ts'
import { openStore } from '../store/sqlite.ts'
import { createIntake } from './intake.ts'
import { createRateLimit } from './rate.ts'

const rounds = 600
let isWarm = false

const samples = [
  {
    type: 'message',
    chatJid: 'warm-up:chat',
    text: 'a line of text',
    groupFolder: 'warm-up',
    timestamp: '',
  },
  { version: 1, id: 'r', type: 'send_message', payload: { text: 'a line of text' } },
]

/**
 * The engine compiles code once it has run for a while, so the first hundreds of files would take twice as long as
 * the rest. Before the daemon takes its first file it decides some made-up ones, on a store in memory that is thrown
 * away: a few hundredths of a second, once in a process.
 */
export function warmUp(config: Config, commands: Commands): void {
  if (isWarm) return
  isWarm = true
  const store = openStore({ path: ':memory:', durability: 'process', prepare: false })
  const group = {
    folder: 'warm-up',
    jid: 'warm-up:chat',
    name: 'Warm-up',
    main: false,
    dialect: 'hatchway',
    trigger: null,
    requires_trigger: false,
    channel: null,
    added_at: new Date(0).toISOString(),
    last_activity: null,
  } as const
  store.transaction(transaction => transaction.insertGroup(group))
  const intake = createIntake({
    config,
    store,
    commands,
    positions: createPositions(store),
    spool: { postpone: () => {} },
    effects: { settle: () => {}, finishBatch: () => {} },
    rate: createRateLimit({ perMinute: config.limits.commandsPerMinute }),
    log: pino({ level: 'silent' }),
    fault: () => {},
    handledBefore: () => undefined,
    publish: () => {},
    hasListeners: () => false,
    announce: false,
    meter: createMeter(Date.now()),
    now: Date.now,
  })
  for (let seq = 1; seq <= rounds; seq++) {
    const sample = samples[seq % samples.length]
    intake.consume([
      fileOf(seq, JSON.stringify({ ...sample, ...(sample && 'id' in sample ? { id: `r-${seq}` } : {}) })),
    ])
  }
  store.close()
}

const fileOf = (seq: number, text: string): ClaimedFile => ({
  seq,
  inbox: 'warm-up',
  subdirectory: 'messages',
  name: `${seq}.json`,
  path: '',
  inode: seq,
  mtimeUs: 0,
  size: text.length,
  text,
  problem: undefined,
  recovered: false,
  mayGrow: false,
})
