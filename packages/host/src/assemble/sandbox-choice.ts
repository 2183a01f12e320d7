import type { Group } from '@hatchway/protocol'
import type { Logger } from 'pino'
import { type Config, settingsOf } from '../config.ts'
import type { DriverName } from '../runs/drivers.ts'
import { ignoredProxy } from '../runs/model-gateway/proxy.ts'
import { type Choice, checkSandbox, chooseSandbox, createSandboxes } from '../sandboxes/choose.ts'
import type { Sandbox, SandboxName } from '../sandboxes/types.ts'
import { openUsedEngines } from '../sandboxes/used.ts'
import type { Store } from '../store/types.ts'

/** Which sandbox agents run in. Engines are asked, and tried, only when one has to be chosen: that takes seconds. */
export interface SandboxChoice {
  /** for groups that have no settings of their own */
  usual(): Choice
  /** for a run of this driver; left out: the one that the group’s next run has */
  forGroup(group: Group, driver?: DriverName): Promise<Sandbox>
  /** once every run has ended */
  stop(): Promise<void>
}

/** engines that make a container after whoever asked for it is gone */
const lateEngines = ['docker', 'podman'] as const
const lateMs = 20_000

/** Resolves once everything is ended that an earlier process of this installation left running. */
export async function openSandboxChoice({
  config,
  store,
  installation,
  log,
  sandboxes = createSandboxes(config, { installation }),
}: {
  config: Config
  store: Store
  installation: string
  log: Logger
  sandboxes?: ReturnType<typeof createSandboxes>
}): Promise<SandboxChoice> {
  const used = openUsedEngines(store)
  const choose = (driver: DriverName) =>
    used.trying(() => chooseSandbox(config.agents.sandbox, driver, sandboxes))
  let usualDriver = config.agents.driver
  let usual = await choose(usualDriver)
  log.debug({ sandbox: usual.sandbox?.name, reason: usual.reason }, 'agents run in this sandbox')
  for (const problem of [usual.warning, ignoredProxy(process.env)])
    if (problem !== undefined) log.warn(problem)

  const endOrphans = async (name: SandboxName) => {
    const ended = await sandboxes[name].endOrphans(installation)
    if (ended.length > 0) log.warn({ sandbox: name, runs: ended }, 'runs of an earlier process were ended')
  }
  // What a dead process left running may still write; it is ended before anything new starts.
  for (const name of used.all()) {
    const known = usual.considered.find(considered => considered.name === name)
    const { available } = known ?? (await checkSandbox(sandboxes[name]))
    if (available) await endOrphans(name)
  }
  // What an engine was still making for the dead process is there only later.
  const endLate = async () => {
    for (const name of used.all().filter(name => lateEngines.some(late => late === name)))
      await endOrphans(name).catch(error =>
        log.warn({ err: error, sandbox: name }, 'what an earlier process may have left could not be ended'),
      )
  }
  const late = setTimeout(endLate, lateMs).unref()

  /** One at a time, and used only afterwards: what an earlier process left is ended, and nothing that has just begun. */
  let choosing: Promise<Sandbox> | undefined
  const chooseAgain = async (driver: DriverName): Promise<Sandbox> => {
    const found = await choose(driver)
    await found.sandbox?.endOrphans(installation)
    usual = found
    usualDriver = driver
    const sandbox = required(found)
    log.info({ sandbox: sandbox.name, reason: found.reason }, 'agents run in this sandbox from now on')
    return sandbox
  }
  /** What isolates nothing was chosen for one driver: an operator who chooses a model puts another in its place. */
  const fits = (sandbox: Sandbox, driver: DriverName) => sandbox.isolated || usualDriver === driver
  /** An engine that was not there when the host started, such as one that starts more slowly, may be there by now. */
  const usualSandbox = async (driver: DriverName): Promise<Sandbox> => {
    if (usual.sandbox && fits(usual.sandbox, driver)) return usual.sandbox
    choosing ??= chooseAgain(driver).finally(() => {
      choosing = undefined
    })
    const chosen = await choosing
    return fits(chosen, driver) ? chosen : usualSandbox(driver)
  }
  const chosenFor = async ({ folder }: Group, driver: DriverName): Promise<Sandbox> => {
    const settings = settingsOf(config, folder)
    if (settings.sandbox === undefined && settings.driver === undefined) return usualSandbox(driver)
    if (settings.sandbox !== undefined && settings.sandbox === usual.sandbox?.name) return usual.sandbox
    return required(await chooseSandbox(settings.sandbox ?? config.agents.sandbox, driver, sandboxes))
  }

  return {
    usual: () => usual,
    async forGroup(group, driver = settingsOf(config, group.folder).driver ?? config.agents.driver) {
      const sandbox = await chosenFor(group, driver)
      used.add(sandbox.name)
      return sandbox
    },
    stop() {
      clearTimeout(late)
      return endLate()
    },
  }
}

function required({ sandbox, reason }: Choice): Sandbox {
  if (sandbox) return sandbox
  throw new Error(reason)
}
