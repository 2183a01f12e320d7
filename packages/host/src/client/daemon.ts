import { announcedSocket } from '../api/socket.ts'
import { signInLink } from '../api/web-token.ts'
import { readLockOwner, stateDirectory } from '../base/lock-owner.ts'
import { DaemonGone, overSocket } from './over-socket.ts'

export interface RunningDaemon {
  pid: number | undefined
  since: string | undefined
  /** files are being taken */
  ready: boolean
  /** signs a browser in at the console; undefined where none is served, or not yet */
  link: string | undefined
}

/**
 * The daemon that has this data directory; undefined: none answers. For programs that start, replace and stop it, so it
 * reads no answer whose shape another version may have changed.
 */
export async function findDaemon(data: string): Promise<RunningDaemon | undefined> {
  try {
    const { status } = await overSocket(announcedSocket(data)).request('GET', '/readyz', undefined)
    const owner = readLockOwner(data)
    return {
      pid: owner?.pid,
      since: owner?.since,
      ready: status === 200,
      link: owner?.webUrl === undefined ? undefined : signInLink(owner.webUrl, stateDirectory(data)),
    }
  } catch (error) {
    if (error instanceof DaemonGone) {
      // A socket that we may not open is a daemon that we may not ask.
      if (error.cause instanceof Error && 'code' in error.cause && error.cause.code === 'EACCES')
        throw error.cause
      return undefined
    }
    throw error
  }
}
