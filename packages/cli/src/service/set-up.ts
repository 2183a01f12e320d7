import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import type { RunningDaemon } from '@hatchway/host/api'
import { Failure, usageError } from '../failure.ts'
import type { CommonOptions } from '../inputs.ts'
import { poll } from '../poll.ts'
import { visible } from '../text.ts'
import type { Installation } from './installation.ts'
import type { Machine, Programs, Report } from './machine.ts'
import type { Manager } from './types.ts'

const emptyEnvironment = '# Secrets for Hatchway, one NAME=value in each line, such as ANTHROPIC_API_KEY=…\n'

export interface Plan {
  text: string
  data: string
  owner: { uid: number; gid: number }
  hasConsole: boolean
}

/** What the unit will say. Nothing is changed, and nothing is asked that can be found out. */
export async function planService(
  options: CommonOptions & { runAs?: string | undefined },
  manager: Manager,
  programs: Programs,
  installation: Installation,
): Promise<Plan> {
  const isSystem = manager.scope === 'system'
  if (options.runAs !== undefined && !isSystem)
    throw usageError('--run-as is for a system service. Add --system, as root.')
  const { explainConfig } = await import('@hatchway/host/config')
  const { config, file } = await explainConfig({ data: options.data, file: options.config })
  const { data } = config
  const owner = statSync(data, { throwIfNoEntry: false })
  if (!owner)
    throw new Failure(
      `There is no data directory ${data}. ${isSystem ? `${createUser} Then, as that user: ` : 'Create it with: '}hatchway init --data ${data}`,
    )
  const user = isSystem ? await userOf(options.runAs, { data, uid: owner.uid }, programs) : undefined
  const { node, program, directory, kind } = installation
  if (kind === 'npx')
    throw new Failure(
      'npx keeps Hatchway in a cache that it may empty. Install it first: npm install --global hatchway',
    )
  const text = manager.text({
    name: manager.name,
    node,
    program,
    data,
    config: file,
    directory: file === undefined ? data : dirname(file),
    environmentFile: manager.environmentFile,
    user,
    clone: kind === 'clone' ? directory : undefined,
  })
  return { text, data, owner: { uid: owner.uid, gid: owner.gid }, hasConsole: config.web.enabled === 'yes' }
}

const createUser =
  'Create a user for Hatchway: useradd --system --user-group --create-home --home-dir /var/lib/hatchway --shell /usr/sbin/nologin hatchway.'

/** Never root, unless that is asked for. */
async function userOf(
  asked: string | undefined,
  { data, uid }: { data: string; uid: number },
  programs: Programs,
): Promise<string> {
  if (asked === undefined) {
    if (uid === 0)
      throw new Failure(
        `${data} belongs to root, and Hatchway needs no root. ${createUser} Then: chown -R hatchway: ${data}, and repeat this. (--run-as root runs it as root all the same.)`,
      )
    const { code, stdout } = await programs.ask('id', '-un', String(uid))
    return code === 0 ? stdout.trim() : String(uid)
  }
  const { code, stdout } = await programs.ask('id', '-u', asked)
  if (code !== 0) throw new Failure(`There is no user ${asked}. ${createUser}`)
  if (Number(stdout) !== uid && asked !== 'root')
    throw new Failure(`${data} does not belong to ${asked}. Give it away first: chown -R ${asked}: ${data}`)
  return asked
}

export interface Installed {
  changed: boolean
  daemon: RunningDaemon
}

export async function installService(
  plan: Plan,
  manager: Manager,
  machine: Machine,
  programs: Programs,
  { report, seconds }: { report: Report; seconds: number },
): Promise<Installed> {
  const { scope, file } = manager
  const problem = await manager.problem(programs)
  if (problem !== undefined) throw new Failure(problem)
  if (scope === 'system' && machine.uid !== 0)
    throw new Failure('A system service needs root: repeat this with sudo, or leave --system out.')
  await manager.prepare(programs, report)
  const before = await manager.state(programs)
  const { findDaemon } = await import('@hatchway/host/api')
  const old = await findDaemon(plan.data)
  if (old && !before.running)
    throw new Failure(
      `A daemon that is not this service (process ${old.pid}) already runs on ${plan.data}. Stop it first, with Ctrl-C where it was started or: kill ${old.pid}`,
    )
  const changed = !existsSync(file) || readFileSync(file, 'utf8') !== plan.text
  if (changed) {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(`${file}.new`, plan.text, { mode: 0o644 })
    renameSync(`${file}.new`, file)
    await report(`Wrote ${visible(file)}`)
  }
  await prepareSecrets(plan, manager, report)
  await manager.start(programs, before, changed)
  const isRestarted = changed && before.running
  const daemon = await waitUntilReady(plan.data, {
    findDaemon,
    replaces: isRestarted ? old : undefined,
    hasConsole: plan.hasConsole,
    seconds,
  })
  if (!daemon)
    throw new Failure(
      `The service was started, but the daemon is not ready after ${seconds} s. See why: hatchway service logs`,
    )
  return { changed, daemon }
}

/** systemd reads the secrets as root; under launchd the daemon's own user does, which also owns its log. */
async function prepareSecrets(
  { owner }: Plan,
  { kind, scope, environmentFile, logFile }: Manager,
  report: Report,
) {
  for (const path of [environmentFile, ...(logFile === undefined ? [] : [logFile])]) {
    const found = statSync(path, { throwIfNoEntry: false })
    if (found && (found.mode & 0o077) === 0) continue
    if (!found) {
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, path === environmentFile ? emptyEnvironment : '', { mode: 0o600, flag: 'wx' })
      if (kind === 'launchd' && scope === 'system') chownSync(path, owner.uid, owner.gid)
    }
    chmodSync(path, 0o600)
    await report(`${found ? 'Closed to others:' : 'Wrote'} ${visible(path)} (mode 0600)`)
  }
}

interface Wait {
  /** loaded by the caller: after an upgrade, its file is gone */
  findDaemon(data: string): Promise<RunningDaemon | undefined>
  /** a daemon that has been told to end does not count */
  replaces: RunningDaemon | undefined
  hasConsole: boolean
  seconds: number
}

/** undefined: not in time. */
export async function waitUntilReady(
  data: string,
  { findDaemon, replaces, hasConsole, seconds }: Wait,
): Promise<RunningDaemon | undefined> {
  let latest: RunningDaemon | undefined
  const complete = await poll(
    async () => {
      const found = await findDaemon(data)
      latest = found?.ready && found.since !== replaces?.since ? found : undefined
      // The console is served a moment after files are.
      return latest && (latest.link !== undefined || !hasConsole) ? latest : undefined
    },
    { everyMs: 200, timeoutMs: seconds * 1000 },
  )
  return complete ?? latest
}

/** Stops the service and deletes its unit; the data and the secrets stay. */
export async function removeService(manager: Manager, programs: Programs, report: Report): Promise<void> {
  await manager.stop(programs)
  rmSync(manager.file)
  await report(`Deleted ${visible(manager.file)}`)
  await manager.forget(programs)
}
