import type { Launched, LaunchOptions } from '../daemon/process.ts'
import { killAlone } from './kills.ts'
import type { Testbed } from './testbed.ts'

/** The daemon of an installation, over rounds that do not end it. */
export interface RestartableDaemon {
  start(): Launched
  /** starts one if there is none */
  up(): Promise<void>
  isGone(): boolean
  pid(): number | undefined
  kill(): Promise<void>
  stop(): Promise<void>
  /** how it ended, if it has, and its last words */
  output(): string
}

export function createRestartableDaemon(testbed: Testbed, how: LaunchOptions = {}): RestartableDaemon {
  let daemon: Launched | undefined
  let isGone = true
  let ending = ''
  const start = () => {
    const started = testbed.start(how)
    daemon = started
    isGone = false
    started.exited.then(({ code, signal }) => {
      if (daemon !== started) return
      isGone = true
      ending = `ended with ${signal ?? `code ${code}`} after: `
    })
    return started
  }
  return {
    start,
    async up() {
      if (isGone) start()
      await daemon?.ready
    },
    isGone: () => isGone,
    pid: () => daemon?.pid,
    async kill() {
      if (daemon && !isGone) await killAlone(daemon)
    },
    async stop() {
      if (daemon && !isGone) await daemon.stop()
    },
    output: () => `${isGone ? ending : ''}${daemon?.output().slice(-400) ?? ''}`,
  }
}
