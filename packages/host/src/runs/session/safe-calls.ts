import type { SessionListeners, SessionOptions } from './types.ts'

type Asked = 'notices' | 'waitsForPeople'

/**
 * The calls that a session makes to the rest of the host, made safe: an error that one of them throws is logged. Most
 * are made right after a commit. If such an error reached the listener of the agent's output, the event would be handled
 * once more, and people would get the same answer twice. Thrown in a timer, it would end the host.
 */
export type SafeCalls = Required<SessionListeners & Pick<SessionOptions, Asked>>

export function safeCalls(
  options: SessionListeners & Pick<SessionOptions, Asked | 'log'>,
  about: object,
): SafeCalls {
  const attempt = <T>(what: string, call: () => T, otherwise: T): T => {
    try {
      return call()
    } catch (error) {
      options.log.error({ err: error, ...about }, `a call of a session failed: ${what}`)
      return otherwise
    }
  }
  return {
    said: () => attempt('said', options.said, undefined),
    changed: state => attempt('changed', () => options.changed(state), undefined),
    uses: tool => attempt('uses', () => options.uses?.(tool), undefined),
    writes: words => attempt('writes', () => options.writes?.(words), undefined),
    turnOver: () => attempt('turnOver', () => options.turnOver?.(), undefined),
    cutOff: by => attempt('cutOff', () => options.cutOff(by), undefined),
    turnStopped: () => attempt('turnStopped', () => options.turnStopped?.(), undefined),
    hasRoom: () => attempt('hasRoom', options.hasRoom, undefined),
    waitsForPeople: () => attempt('waitsForPeople', () => options.waitsForPeople?.() === true, false),
    notices: () => attempt('notices', () => options.notices?.() ?? [], []),
  }
}
