import { platform } from '@hatchway/host/platform'

/** Calls back when we should end: on a signal, or when the process that started us for somebody ends. */
export function onEndRequested(then: (signal: NodeJS.Signals) => void): void {
  // Never removed: an impatient second Ctrl-C must not interrupt a clean end.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => then(signal))
  if (process.channel) process.once('disconnect', () => then('SIGTERM'))
  onCallerEnd(() => then('SIGTERM'))
}

/**
 * `npx hatchway up` and `npm start` put npm and a shell between the person and us, and that shell does not forward
 * signals: a SIGTERM to it would leave a daemon behind that nobody controls. So a daemon that npm started ends when npm
 * or the shell ends.
 */
function onCallerEnd(then: () => void): void {
  if (process.env.npm_lifecycle_event === undefined) return
  const before = callers()
  const timer = setInterval(() => {
    if (callers() === before) return
    clearInterval(timer)
    then()
  }, 200).unref()
}

const shells = new Set(['sh', 'dash', 'bash', 'ash', 'zsh'])

/** Our parent, and npm behind it if the parent is only a shell. An orphan gets another parent. */
function callers(): string {
  const pid = process.ppid
  // macOS would have to start a program for each check; a shell that ends is noticed there as well.
  const parent = platform.name === 'linux' ? platform.process(pid) : undefined
  return parent !== undefined && shells.has(parent.name) ? `${pid} ${parent.parent}` : String(pid)
}
