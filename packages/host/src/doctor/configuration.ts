import { existsSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { ask, findProgram } from '../base/programs.ts'
import type { Config } from '../config.ts'
import { accountOf, ownAccount } from '../plugins/jobs/accounts.ts'
import { needsKey } from '../runs/model-gateway/health.ts'
import { checkMounts } from '../sandboxes/allowed-mounts.ts'
import { loadPlugins } from '../services/plugins.ts'
import { bad, type DoctorContext, type Finding, good, some, warning } from './types.ts'

const project = fileURLToPath(new URL('../../../../', import.meta.url))
const gitMs = 10_000

/** What is written in the configuration, compared with what is there. That it can be read at all was seen before. */
export async function configuration(patient: DoctorContext): Promise<Finding[]> {
  const { config } = patient
  const problems = [
    ...keys(patient),
    // The daemon has the environment that counts, and has tried.
    ...(patient.checkup?.model ? [bad('configuration', patient.checkup.model)] : []),
    ...groups(patient),
    ...mounts(config),
    ...(patient.holder === 'daemon' ? [] : await plugins(config)),
    ...(await repos(config)),
    ...(await jobs(config)),
    ...(await deploy(config)),
  ]
  return problems.length > 0
    ? problems
    : [good('configuration', 'It can be read, and what it names is there.')]
}

/** Variables that are named and not set: the daemon may have them from its unit file, which this cannot see. */
function keys({ config, checkup, environment }: DoctorContext): Finding[] {
  const wanted = new Map<string, string>()
  if (needsKey(config) && !checkup?.model) wanted.set(config.model.keyVariable, 'the model')
  if (config.inspector.model !== undefined) wanted.set(config.inspector.keyVariable, 'the inspector')
  if (config.webhook.url !== undefined) wanted.set(config.webhook.secretVariable, 'webhooks')
  for (const [name, account] of Object.entries(config.calendars))
    if ('passwordVariable' in account && typeof account.passwordVariable === 'string')
      wanted.set(account.passwordVariable, `the calendar ${name}`)
  return [...wanted]
    .filter(([variable]) => (environment[variable] ?? '') === '')
    .map(([variable, what]) =>
      warning(
        'configuration',
        `${variable} is not set here, and ${what} needs it. If the daemon gets it from its service unit, all is well; otherwise set it.`,
      ),
    )
}

function groups({ config, checkup }: DoctorContext): Finding[] {
  const known = checkup?.store?.groups.map(({ folder }) => folder)
  const findings: Finding[] = []
  const unknown = known ? Object.keys(config.groups).filter(folder => !known.includes(folder)) : []
  if (unknown.length > 0)
    findings.push(
      warning(
        'configuration',
        `\`groups\` has settings for ${some(unknown)}, and no such group is registered. Correct the folder, or register it: hatchway groups add.`,
      ),
    )
  for (const [folder, settings] of [['agents', config.agents] as const, ...Object.entries(config.groups)]) {
    const driver = settings.driver ?? config.agents.driver
    const command = settings.command ?? config.agents.command
    if (driver === 'command' && (command ?? []).length === 0)
      findings.push(
        bad(
          'configuration',
          `${folder}: the driver \`command\` needs \`command\`, the program and its arguments.`,
        ),
      )
  }
  return findings
}

function mounts(config: Config): Finding[] {
  if (config.mountsAllowed !== undefined && !existsSync(config.mountsAllowed))
    return [
      bad(
        'configuration',
        `\`mountsAllowed\` names ${config.mountsAllowed}, which does not exist. Make it, with a directory a line.`,
      ),
    ]
  return Object.entries(config.groups).flatMap(([folder, { mounts: requests }]) => {
    const checked = checkMounts(
      (requests ?? []).map(mount => ({ ...mount, writable: mount.writable })),
      { allowedFile: config.mountsAllowed, project, data: config.data },
    )
    return checked.ok
      ? []
      : checked.problems.map(problem => bad('configuration', `groups.${folder}: ${problem}`))
  })
}

async function plugins(config: Config): Promise<Finding[]> {
  const services = await loadPlugins(config.services.plugins, pino({ level: 'silent' }))
  return services.flatMap(service => {
    const state = service.state?.()
    return state && !state.ok ? [bad('configuration', `services.plugins: ${state.text}`)] : []
  })
}

const isDirectory = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true

async function git(directory: string, ...args: string[]): Promise<boolean> {
  const program = findProgram('git')
  if (program === undefined) return false
  // Not even the repository's own settings may start a program here.
  const safe = ['-c', 'core.fsmonitor=false', '-c', 'safe.directory=*', '-C', directory]
  return (await ask(program, [...safe, ...args], { timeoutMs: gitMs })).code === 0
}

async function repos(config: Config): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const [name, { path, branch }] of Object.entries(config.repos)) {
    const where = `repos.${name}`
    if (!isDirectory(path)) findings.push(bad('configuration', `${where}: ${path} is not a directory.`))
    else if (findProgram('git') === undefined)
      findings.push(
        bad('configuration', `${where}: there is no program \`git\` on this machine. Install it.`),
      )
    else if (!(await git(path, 'rev-parse', '--git-dir')))
      findings.push(
        bad(
          'configuration',
          `${where}: ${path} is not a git repository. Correct it, or run: git init ${path}`,
        ),
      )
    else if (!(await git(path, 'rev-parse', '--verify', '--quiet', `refs/heads/${branch}`)))
      findings.push(
        bad(
          'configuration',
          `${where}: ${path} has no branch ${branch}. Correct \`branch\`, or make one with a first commit.`,
        ),
      )
  }
  return findings
}

async function jobs({ hostJobs }: Config): Promise<Finding[]> {
  if (hostJobs.enabled === 'no') return []
  const findings: Finding[] = []
  if (hostJobs.directories.length === 0)
    findings.push(
      warning(
        'configuration',
        '`hostJobs` is on and names no directory, so that nothing runs. Name one in `hostJobs.directories`.',
      ),
    )
  const missing = hostJobs.directories.filter(path => !isDirectory(path))
  if (missing.length > 0)
    findings.push(
      bad('configuration', `hostJobs.directories: ${some(missing)} is not there. Make it, or take it out.`),
    )
  const own = ownAccount()
  if (own.uid === 0 && hostJobs.users.length === 0)
    findings.push(
      bad('configuration', 'hostJobs.users: a daemon that is root runs no job as root. Name a user.'),
    )
  for (const user of hostJobs.users) {
    if (!(await accountOf(user)))
      findings.push(bad('configuration', `hostJobs.users: this machine has no user ${user}.`))
    else if (own.uid !== 0 && user !== own.name)
      findings.push(
        warning('configuration', `hostJobs.users: only a daemon that is root can run jobs as ${user}.`),
      )
  }
  return findings
}

async function deploy({ deploy: settings }: Config): Promise<Finding[]> {
  if (settings.enabled === 'no') return []
  const directory = settings.directory ?? project
  if (!isDirectory(directory)) return [bad('configuration', `deploy.directory: ${directory} is not there.`)]
  return (await git(directory, 'rev-parse', '--verify', '--quiet', 'HEAD'))
    ? []
    : [bad('configuration', `deploy.directory: ${directory} is not a git checkout with a commit.`)]
}
