import { execFile } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { DialectName } from '@hatchway/protocol'
import { onTestFinished } from 'vitest'
import type { z } from 'zod'
import { groupAnswer, messagesAnswer, runsAnswer, transcriptAnswer } from '../../../host/src/api/answers.ts'
import { announcedSocket } from '../../../host/src/api/socket.ts'
import { overSocket } from '../../../host/src/client/over-socket.ts'
import type { Method } from '../../../host/src/client/transport.ts'
import { hatchwayProgram } from '../paths.ts'
import { clear } from '../sandboxes/engines.ts'
import { until } from '../until.ts'
import { type Launched, launch } from './process.ts'

const call = promisify(execFile)
/** An agent may say a megabyte at once. */
const maxBuffer = 16 * 1024 * 1024

export interface InstallationOptions {
  sandbox: string
  /** the Node that runs the daemon and the commands; left out: ours */
  node?: string
  environment?: (home: string) => Record<string, string>
  /** whom the daemon runs as; left out: ourselves */
  uid?: number
  /** more about the main group, as `groups add` takes it */
  main?: readonly string[]
  /** a command that runs the daemon; left out: nothing does */
  under?: (data: string) => readonly string[]
  /** makes ready what is to lie there when the daemon starts */
  before?: (data: string) => void
  /** is given what takes the installation down; left out: the test that runs, which is unknown among concurrent ones */
  atEnd?: (close: () => Promise<void>) => void
  /** all the daemon prints */
  hear?: (text: string) => void
}

/** A daemon as people start it, with a main group, and the command line as people use it. */
export const openInstallation = async (options: InstallationOptions) => {
  const { sandbox, uid, main = [], environment = () => ({}), atEnd = onTestFinished } = options
  const home = mkdtempSync(join(tmpdir(), 'hatchway-test-'))
  chmodSync(home, 0o755)
  const data = join(home, 'data')
  mkdirSync(data)
  if (uid !== undefined) chownSync(data, uid, uid)
  const env = {
    HATCHWAY_AGENTS_ENABLED: 'yes',
    HATCHWAY_AGENTS_SANDBOX: sandbox,
    HATCHWAY_WEB_ENABLED: 'no',
    HATCHWAY_LOG_LEVEL: 'info',
    HATCHWAY_TIMEZONE: 'UTC',
    ...(uid === undefined ? {} : { HOME: home }),
    ...environment(home),
  }
  const as = uid === undefined ? {} : { uid, gid: uid }
  const hatchway = async (...args: string[]) => {
    const { stdout } = await call(
      options.node ?? process.execPath,
      [hatchwayProgram, ...args, '--data', data],
      {
        env: { ...process.env, ...env },
        maxBuffer,
        ...as,
      },
    )
    return stdout
  }
  let daemon: Launched | undefined
  const up = async () => {
    daemon = launch(data, {
      env,
      args: ['--create-main'],
      under: options.under?.(data) ?? [],
      ...as,
      ...(options.hear ? { hear: options.hear } : {}),
      ...(options.node === undefined ? {} : { node: options.node }),
    })
    await daemon.ready
  }
  atEnd(async () => {
    await daemon?.stop()
    await clear(home)
  })
  // The daemon makes an ordinary main group itself, which is a process less.
  if (main.length > 0 || options.before) {
    const group = ['--folder', 'main', '--jid', 'local:main', '--name', 'Main', '--main']
    await hatchway('groups', 'add', ...group, ...main)
  }
  options.before?.(data)
  await up()

  // A command for each look would cost half a second of a processor. And unlike the commands' own client, which does
  // the work itself where no daemon runs, this one fails.
  const request = async <T>(method: Method, path: string, body: unknown, schema: z.ZodType<T>) => {
    const { status, text } = await overSocket(announcedSocket(data)).request(method, path, body)
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`)
    return schema.parse(JSON.parse(text))
  }
  const only = (group: string | undefined) => (group === undefined ? '' : `&group=${group}`)
  return {
    home,
    data,
    up,
    hatchway,
    daemon: () => daemon,
    /** once agents are run: that is a moment after files are handled */
    runTask: (id: string) =>
      until(async () => {
        const path = `/tasks/${id}/run`
        const { status, text } = await overSocket(announcedSocket(data)).request('POST', path, undefined)
        if (status >= 300 && status !== 501) throw new Error(`POST ${path}: ${status} ${text}`)
        return status < 300
      }),
    say: (text: string) => hatchway('chat', '--once', text, '--wait'),
    addGroup: (group: { folder: string; jid: string; name: string; dialect?: DialectName }) =>
      request('POST', '/groups', group, groupAnswer),
    runs: (group?: string) => request('GET', `/runs?limit=100${only(group)}`, undefined, runsAnswer),
    show: (runId: string) => request('GET', `/runs/${runId}`, undefined, transcriptAnswer),
    texts: async (group?: string) =>
      (await request('GET', `/messages?limit=2000${only(group)}`, undefined, messagesAnswer)).map(
        ({ text }) => text,
      ),
  }
}
