import { visible } from './text.ts'

/** Scripts rely on these; `hatchway --help` and docs/operations.md list them. */
export const exitCodes = { done: 0, failed: 1, refused: 2, noAnswer: 3, usage: 64 } as const

/** A failure of the command itself; the sentence says what to do about it. */
export class Failure extends Error {
  override name = 'Failure'
  readonly exitCode: number

  constructor(sentence: string, exitCode: number = exitCodes.failed) {
    super(sentence)
    this.exitCode = exitCode
  }
}

export const usageError = (sentence: string) => new Failure(sentence, exitCodes.usage)

/**
 * Errors whose message is written for people. By name, so that a command that fails early need not load the modules that
 * define them.
 */
const forPeople: ReadonlySet<string> = new Set([
  'Failure',
  'ApiError',
  'ConfigError',
  'DataDirectoryHeld',
  'DataDirectoryUnusable',
  'DaemonGone',
  'StoreTooNew',
  'StoreUnusable',
  'AlreadySupervised',
  'ArchiveBroken',
  'RestoreRefused',
  'ImportRefused',
  'NotInstalled',
])

const codeOf = (error: Error): string | undefined =>
  'code' in error && error.code !== undefined ? String(error.code) : undefined

function hintFor(error: Error): string {
  if (error.name === 'ApiError') return ` (${visible(codeOf(error) ?? 'refused')})`
  if (error.name === 'DataDirectoryHeld') return ' Stop it first, or use another --data directory.'
  const isDenied = 'syscall' in error && ['EACCES', 'EPERM'].includes(codeOf(error) ?? '')
  return isDenied ? '. Run it as the daemon’s user, or as root.' : ''
}

function explain(error: unknown): string {
  if (!(error instanceof Error)) return visible(String(error))
  // The message of a system error names the file and the problem. Anything else is a bug: the stack says where.
  const isExplained = forPeople.has(error.name) || 'syscall' in error
  const text = isExplained ? error.message : (error.stack ?? error.message)
  return `${text.split('\n').map(visible).join('\n')}${hintFor(error)}`
}

/** The one place where errors become a sentence and an exit code. */
export function reportFailure(error: unknown): void {
  process.stderr.write(`hatchway: ${explain(error)}\n`)
  process.exitCode =
    error instanceof Failure
      ? error.exitCode
      : error instanceof Error && error.name === 'ApiError'
        ? exitCodes.refused
        : exitCodes.failed
}

/** For commands that run a daemon: whatever a failure left open must not keep the process alive. */
export async function runToExit(work: () => Promise<number>): Promise<never> {
  try {
    process.exitCode = await work()
  } catch (error) {
    reportFailure(error)
  }
  process.exit()
}
