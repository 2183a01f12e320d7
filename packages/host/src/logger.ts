import { type Logger, pino } from 'pino'
import type { Config } from './config.ts'

/** Structured lines on standard error; standard output belongs to whoever started us. */
export const createLogger = (config: Config): Logger =>
  pino({ level: config.logLevel, base: null }, pino.destination({ dest: 2, sync: true }))
