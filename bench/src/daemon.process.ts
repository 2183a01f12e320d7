import { subscribe } from 'node:diagnostics_channel'
import { asHatchwayOptions } from './hatchway.ts'
import { type Daemon, registerGroups, startDaemon } from './host.ts'
import { openLedger } from './ledger.ts'
import { serve } from './serve.ts'
import { asBigint, asFields, asNumber, asTexts } from './shape.ts'
import { stampLog } from './stamps.ts'

/** The process in which the real daemon runs. Takes note of every commit and tells when asked, never by itself. */
const log = stampLog()
let daemon: Daemon | undefined
let startedAt = 0n
let lastAt = 0n

serve({
  register: argument => registerGroups(asHatchwayOptions(argument)),

  start(argument) {
    const options = asHatchwayOptions(argument)
    const writeDown = openLedger(options.ledger)
    subscribe('hatchway:committed', message => {
      const { files, at } = asFields(message)
      const names = asTexts(files)
      lastAt = asBigint(at)
      if (options.record === 'count') log.count(names.length)
      else for (const name of names) log.add(name, lastAt)
      if (options.ledger !== undefined) names.forEach(writeDown)
    })
    startedAt = process.hrtime.bigint()
    daemon = startDaemon(options)
    if (options.telegram) void daemon.onSaid(text => log.add(text, process.hrtime.bigint()))
  },

  ready: () => daemon?.ready,
  agentsReady: () => daemon?.agentsReady(),
  sessions: () => daemon?.sessions(),
  waitFor: count => log.waitFor(asNumber(count)),
  progress: () => ({ files: log.total(), at: lastAt, seconds: Number(lastAt - startedAt) / 1e9 }),
  take: () => log.take(),
  stop: () => daemon?.stop(),
})
