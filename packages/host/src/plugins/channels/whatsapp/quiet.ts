import { AsyncLocalStorage } from 'node:async_hooks'
import type { Logger } from 'pino'
import type { SocketConfig } from './library.ts'

/**
 * What the library writes must not reach the host's log: it logs keys and what people say. Its own logger is replaced. The
 * cipher that it uses writes whole sessions, private keys included, with `console`, so that is deaf while the cipher works.
 */
const isQuiet = new AsyncLocalStorage<true>()
const methods = ['log', 'info', 'warn', 'error', 'debug'] as const
let users = 0
let restore = () => {}

/** Until the result is called. Whatever is written outside of `quietly` is written as before. */
export function silenceCipher(): () => void {
  if (users++ === 0) {
    const before = methods.map(method => [method, console[method]] as const)
    for (const [method, write] of before)
      console[method] = (...words: unknown[]) => {
        if (!isQuiet.getStore()) Reflect.apply(write, console, words)
      }
    restore = () => {
      for (const [method, write] of before) console[method] = write
    }
  }
  let isOver = false
  return () => {
    if (isOver) return
    isOver = true
    if (--users === 0) restore()
  }
}

export const quietly = <T>(work: () => T): T => isQuiet.run(true, work)

/** Only the library's own fixed words for what went wrong, and only for whoever looks for a fault. */
export function libraryLogger(log: Logger): SocketConfig['logger'] {
  const nothing = () => {}
  const say = (about: unknown, text?: string) =>
    log.debug({ library: 'baileys' }, text ?? (typeof about === 'string' ? about : 'something went wrong'))
  const logger: SocketConfig['logger'] = {
    level: 'silent',
    child: () => logger,
    trace: nothing,
    debug: nothing,
    info: nothing,
    warn: say,
    error: say,
  }
  return logger
}
