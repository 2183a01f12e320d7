import { existsSync } from 'node:fs'
import type { RunningDaemon } from '@hatchway/host/api'
import { command, family } from '../command.ts'
import { type Fact, facts } from '../facts.ts'
import { Failure } from '../failure.ts'
import { when } from '../format.ts'
import { type CommonOptions, flag, text } from '../inputs.ts'
import { note, printJson, printLine, write } from '../output.ts'
import { withProgress } from '../progress.ts'
import { serviceData } from '../service/data.ts'
import { createPrograms, thisMachine } from '../service/machine.ts'
import { findManager, serviceInputs, timeout } from '../service/manager.ts'
import type { Manager } from '../service/types.ts'
import { findPlace } from '../session.ts'
import { visible } from '../text.ts'
import logs from './logs.ts'

/** Lines for people as they happen; with --json they are part of the answer. */
function createReport(json: boolean | undefined) {
  const steps: string[] = []
  const report = async (line: string) => {
    steps.push(line)
    if (!json) await printLine(line)
  }
  return { steps, report }
}

const install = command('install', 'install a service that runs the daemon, also after a reboot or a crash', {
  example: '--data /srv/hatchway\n--system --run-as hatchway\n--print',
  input: {
    ...serviceInputs,
    runAs: text('user', 'the user of a system service (default: the owner of the data directory)'),
    timeout,
    print: flag('only print the unit'),
  },
  async run({ print, json, timeout: seconds, ...options }) {
    const [{ planService, installService }, { findInstallation }] = await Promise.all([
      import('../service/set-up.ts'),
      import('../service/installation.ts'),
    ])
    const machine = thisMachine()
    const manager = findManager(options, machine)
    const { steps, report } = createReport(json)
    const quiet = await createPrograms(machine.env, report)
    const plan = await planService(options, manager, quiet, findInstallation())
    const { kind, scope, name, file, environmentFile, restart } = manager
    if (print) return json ? printJson({ file, text: plan.text }) : write(plan.text)
    const { changed, daemon } = await withProgress('Waiting for the daemon', async say => {
      const announced = async (line: string) => {
        say('')
        await report(line)
        say('Waiting for the daemon')
      }
      const programs = await createPrograms(machine.env, announced)
      return installService(plan, manager, machine, programs, { report: announced, seconds })
    })
    if (json)
      return printJson({ kind, scope, name, file, environment_file: environmentFile, changed, steps, daemon })
    if (steps.length === 0) await printLine(`Nothing to do: ${visible(file)} is up to date.`)
    await printLine(
      `hatchway runs as a ${scope} service of ${kind} on ${visible(plan.data)}, process ${daemon.pid}.`,
    )
    await printLine(`Secrets go into ${visible(environmentFile)}; after a change: ${restart.join(' ')}`)
    await printLine('Its log: hatchway service logs -f')
    if (daemon.link !== undefined) await printLine(`Console: ${daemon.link}`)
  },
})

const status = command('status', 'show whether the service is installed, enabled and running', {
  example: '--json',
  input: serviceInputs,
  async run({ json, ...options }) {
    const machine = thisMachine()
    const manager = findManager(options, machine, { existing: true })
    const { kind, scope, name, file } = manager
    const installed = existsSync(file)
    const programs = await createPrograms(machine.env, async () => {})
    const problem = await manager.problem(programs)
    const state = installed && problem === undefined ? await manager.state(programs) : undefined
    const daemon = await daemonOf(options, manager)
    const since = state?.since ?? (state?.running ? daemon?.since : undefined) ?? null
    if (json)
      return printJson({
        kind,
        scope,
        name,
        file,
        installed,
        enabled: state?.enabled ?? false,
        running: state?.running ?? false,
        since,
        last_exit: state?.last_exit ?? null,
        daemon: daemon ?? null,
      })
    const lines: Fact[] = [
      [
        'service',
        installed
          ? `${file} (${kind}, ${scope})`
          : 'not installed. Install it with: hatchway service install',
      ],
      ...(problem === undefined ? [] : [['problem', problem] as const]),
    ]
    if (state) {
      lines.push(['enabled', state.enabled ? 'yes' : 'no. Repeat: hatchway service install'])
      lines.push(['running', state.running ? `since ${when(since)}` : 'no. See why: hatchway service logs'])
      lines.push(['last exit', state.last_exit ?? 'none'])
    }
    lines.push([
      'daemon',
      daemon ? `process ${daemon.pid}, ${daemon.ready ? 'ready' : 'starting'}` : 'does not answer',
    ])
    if (daemon?.link !== undefined) lines.push(['console', daemon.link])
    await printLine(facts(lines).map(visible).join('\n'))
  },
})

/** The unit knows which data directory it serves, unless another one is named. */
async function daemonOf(options: CommonOptions, manager: Manager): Promise<RunningDaemon | undefined> {
  const data = options.data === undefined ? serviceData(manager) : undefined
  const { findDaemon } = await import('@hatchway/host/api')
  try {
    return await findDaemon(data ?? (await findPlace(options)).data)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EACCES')) throw error
    note('you may not ask the daemon itself. Run this as its user, or as root, to see more.')
    return undefined
  }
}

const remove = command('remove', 'stop the service and delete its unit; the data stays', {
  example: '--name second',
  input: serviceInputs,
  async run({ json, ...options }) {
    const machine = thisMachine()
    const manager = findManager(options, machine, { existing: true })
    const { scope, file, environmentFile } = manager
    if (!existsSync(file)) throw new Failure(`There is no service ${manager.name}: ${file} does not exist.`)
    if (scope === 'system' && machine.uid !== 0)
      throw new Failure('Removing a system service needs root: repeat this with sudo.')
    const { removeService } = await import('../service/set-up.ts')
    const { steps, report } = createReport(json)
    const data = serviceData(manager) ?? null
    const programs = await createPrograms(machine.env, report)
    await withProgress('Stopping the service', () => removeService(manager, programs, report))
    if (json) return printJson({ file, data, environment_file: environmentFile, steps })
    await printLine(
      `The service is gone. Your data${data === null ? '' : ` in ${visible(data)}`} and ${visible(environmentFile)} are still there.`,
    )
  },
})

export default family('service', 'run the daemon as a service of systemd or launchd', [
  install,
  status,
  logs,
  remove,
])
