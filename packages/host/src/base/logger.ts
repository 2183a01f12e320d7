import { type Logger, pino } from 'pino'
import type { Config } from '../config.ts'
import { createRedaction } from './redaction.ts'

/**
 * Structured lines on standard error; standard output belongs to whoever started us. Each line is looked through
 * before it is written: an error of a library may quote an address with a password in it, or a header with a key.
 */
export function createLogger(
  config: Pick<Config, 'logLevel'>,
  options: { environment?: NodeJS.ProcessEnv; write?: (line: string) => void } = {},
): Logger {
  const redacted = createRedaction(options.environment ?? process.env)
  const target = options.write
    ? undefined
    : pino.destination({ dest: 2, sync: true, maxLength: unwrittenBytes })
  // A log on a full disk must not end the host: its lines wait for room, and the newest are lost if they are too many.
  target?.on('error', () => {})
  const write = options.write ?? ((line: string) => target?.write(line))
  return pino(
    {
      level: config.logLevel,
      base: null,
      redact: { paths: [...secretFields, ...secretFields.map(name => `*.${name}`)], censor: '[redacted]' },
    },
    { write: line => void write(redacted(line).replace(unseen, escaped)) },
  )
}

const unwrittenBytes = 1_000_000

/** Beyond what JSON escapes by itself: what moves, hides or turns round the text beside it where a log is read. */
const unseen = /[\p{Cf}\u007f-\u009f\u2028\u2029]/gu
const escaped = (character: string): string =>
  character
    .split('')
    .map(unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')

/** What is secret by its name, whatever it holds. */
const secretFields = [
  'authorization',
  'cookie',
  'password',
  'passwordHash',
  'secret',
  'token',
  'apiKey',
  'api_key',
  'headers.authorization',
  'headers.cookie',
  '["x-api-key"]',
  'headers["x-api-key"]',
  'headers["set-cookie"]',
]
