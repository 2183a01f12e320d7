import { execFile } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'
import { type Launched, launch } from './launch.ts'

const cli = join(import.meta.dirname, '..', '..', 'cli', 'bin', 'hatchway.mjs')
const call = promisify(execFile)

export interface HouseOptions {
  sandbox: string
  environment?: (home: string) => Record<string, string>
  /** whom the daemon runs as; left out: ourselves */
  uid?: number
}

/** A daemon as people start it, with a main group, and the command line as people use it. */
export const openHouse = async ({ sandbox, uid, environment = () => ({}) }: HouseOptions) => {
  const home = mkdtempSync(join(tmpdir(), 'hatchway-house-'))
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
    const { stdout } = await call(process.execPath, [cli, ...args, '--data', data], {
      env: { ...process.env, ...env },
      ...as,
    })
    return stdout
  }
  let daemon: Launched | undefined
  const up = async () => {
    daemon = launch(data, { env, ...as })
    await daemon.ready
  }
  onTestFinished(async () => {
    await daemon?.stop()
    rmSync(home, { recursive: true, force: true })
  })
  await hatchway('groups', 'add', '--folder', 'main', '--jid', 'local:main', '--name', 'Main', '--main')
  await up()
  const list = async (what: string) => JSON.parse(await hatchway(what, 'list', '--json'))
  return {
    data,
    up,
    hatchway,
    daemon: () => daemon,
    say: (text: string) => hatchway('chat', '--once', text, '--wait'),
    runs: (): Promise<{ id: string; kind: string; status: string; sandbox: string }[]> => list('runs'),
    texts: async (): Promise<string[]> => (await list('messages')).map(({ text }: { text: string }) => text),
  }
}

export const until = async (condition: () => Promise<boolean>) => {
  while (!(await condition())) await sleep(100)
}
