import { visible } from './text.ts'

/** What a script can rely on; `hatchway --help` says the same. */
export const exitCodes = { done: 0, failed: 1, refused: 2, noAnswer: 3, usage: 64 } as const

/** A failure of the command itself, with what to do about it. */
export class Failure extends Error {
  override name = 'Failure'
  readonly exitCode: number

  constructor(sentence: string, exitCode: number = exitCodes.failed) {
    super(sentence)
    this.exitCode = exitCode
  }
}

/**
 * One sentence for people. Errors are told apart by name, so that a command that fails early need not have loaded the
 * modules they come from.
 */
function explain(error: unknown): { sentence: string; exitCode: number } {
  if (!(error instanceof Error)) return { sentence: visible(String(error)), exitCode: exitCodes.failed }
  const exitCode =
    error instanceof Failure
      ? error.exitCode
      : error.name === 'ApiError'
        ? exitCodes.refused
        : exitCodes.failed
  const sentence = error.message.split('\n').map(visible).join('\n')
  switch (error.name) {
    case 'Failure':
    case 'ConfigError':
    case 'DataDirectoryUnusable':
    case 'DaemonGone':
    case 'StoreTooNew':
    case 'StoreUnusable':
    case 'AlreadySupervised':
    case 'ArchiveBroken':
    case 'RestoreRefused':
    case 'ImportRefused':
      return { sentence, exitCode }
    case 'ApiError':
      return {
        sentence: `${sentence} (${'code' in error ? visible(String(error.code)) : 'refused'})`,
        exitCode,
      }
    case 'DataDirectoryHeld':
      return { sentence: `${sentence} Stop it first, or use another --data directory.`, exitCode }
    default:
      // Of the system's errors the message names the file and what is wrong; where in our code it came up helps nobody.
      if ('syscall' in error) {
        const denied = 'code' in error && (error.code === 'EACCES' || error.code === 'EPERM')
        return {
          sentence: denied ? `${sentence}. Run it as the daemon’s user, or as root.` : sentence,
          exitCode,
        }
      }
      return { sentence: visible(error.stack ?? error.message).replaceAll('\\n', '\n'), exitCode }
  }
}

export function complain(error: unknown): void {
  const { sentence, exitCode } = explain(error)
  process.stderr.write(`hatchway: ${sentence}\n`)
  process.exitCode = exitCode
}
