import { existsSync } from 'node:fs'
import { type Checkup, checkupAnswer } from '../api/answers.ts'
import { announcedSocket } from '../api/socket.ts'
import { layoutOf } from '../base/layout.ts'
import { isFree } from '../base/lock.ts'
import { DaemonGone, overSocket } from '../client/over-socket.ts'
import type { Config } from '../config.ts'
import { inspectStore } from '../store/inspect.ts'

/** What the doctor asks of whoever has the data directory. */
interface Consulted {
  /** a daemon answers; `silent`: somebody has the directory and does not answer; `nobody` has it */
  who: 'daemon' | 'silent' | 'nobody'
  checkup: Checkup | undefined
}

/** The daemon if one runs; otherwise the database itself, which is only looked at. */
export async function consult(config: Config): Promise<Consulted> {
  const transport = overSocket(announcedSocket(config.data))
  try {
    const { status, text } = await transport.request('POST', '/checkup', {})
    if (status === 200) return { who: 'daemon', checkup: checkupAnswer.parse(JSON.parse(text)) }
    return { who: 'daemon', checkup: undefined }
  } catch (error) {
    if (!(error instanceof DaemonGone)) throw error
  }
  const { database, state } = layoutOf(config.data)
  if (!existsSync(state)) return { who: 'nobody', checkup: undefined }
  if (!isFree(config.data)) return { who: 'silent', checkup: undefined }
  return { who: 'nobody', checkup: existsSync(database) ? await looked(database) : undefined }
}

const looked = async (database: string): Promise<Checkup> => ({
  store: await inspectStore(database),
  clock_jump_ms: 0,
  modes: {},
  channels: {},
  channel_problems: [],
  troubled: [],
  liveness: [],
  services: [],
  problem: null,
  model: null,
})
