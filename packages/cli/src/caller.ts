import { readFileSync } from 'node:fs'

/**
 * `npx hatchway up` and `npm start` put npm and a shell between the person and us, and that shell does not pass
 * signals on: ended with SIGTERM, it would leave a daemon behind that nobody holds any more. So a daemon that npm
 * started ends when npm or the shell does. One started in any other way is its starter's own business.
 */
export function whenCallerEnds(then: () => void): void {
  if (process.env.npm_lifecycle_event === undefined) return
  const before = callers()
  const timer = setInterval(() => {
    if (callers() === before) return
    clearInterval(timer)
    then()
  }, 200).unref()
}

const shells = new Set(['sh', 'dash', 'bash', 'ash', 'zsh'])

/** Our parent, and npm behind it where the parent is only a shell. An orphan gets another parent. */
function callers(): string {
  const parent = process.ppid
  const { name, ppid } = process.platform === 'linux' ? lookUp(parent) : {}
  return name !== undefined && shells.has(name) ? `${parent} ${ppid}` : String(parent)
}

function lookUp(pid: number): { name?: string; ppid?: string } {
  try {
    const [, name, ppid] = /^\d+ \((.*)\) \S (\d+) /s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? []
    return name === undefined || ppid === undefined ? {} : { name, ppid }
  } catch (error) {
    // It has ended since we asked for its number, which the next look will show.
    if (error instanceof Error && 'code' in error) return {}
    throw error
  }
}
