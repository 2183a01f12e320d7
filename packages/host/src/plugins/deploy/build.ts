import type { Step } from '../../commands/service-tools.ts'
import { ServiceRefusal } from '../../services/define.ts'
import type { Checkout } from '../../supervisor/checkout.ts'
import { runCommand, shown } from '../../supervisor/command.ts'
import { stoppedWhileBuilding } from './ending.ts'
import type { DeployRow } from './entity.ts'
import { named } from './revisions.ts'
import type { DeploySettings } from './settings.ts'

/** Runs the commands that build and check a revision; throws a refusal if that is not what can be started. */
export async function build(
  row: DeployRow,
  options: {
    settings: DeploySettings
    directory: string
    checkout: Checkout
    installation: string
    environment: Readonly<NodeJS.ProcessEnv>
    /** the deploy is taken back */
    signal: AbortSignal
    /** the host stops */
    stopping: AbortSignal
    progress(step: Step): void
  },
): Promise<void> {
  const { settings, directory, checkout, installation, environment, signal, stopping, progress } = options
  const commands = [...settings.build, ...settings.check]
  const abort = AbortSignal.any([signal, stopping])
  for (const [done, command] of commands.entries()) {
    progress({ progress: done, total: commands.length + 1, message: `running ${shown(command)}` })
    const failure = await runCommand(command, {
      directory,
      ms: settings.commandMs,
      installation,
      deploy: row.id,
      environment,
      abort,
    })
    if (stopping.aborted) throw new ServiceRefusal('interrupted', stoppedWhileBuilding)
    if (signal.aborted) throw new ServiceRefusal('cancelled', 'The deploy was taken back while it was built.')
    if (failure !== undefined) {
      throw new ServiceRefusal(
        'check_failed',
        `Nothing was restarted: ${named(row.from)} runs on, and the checkout stays at ${named(row.to)}. ${failure}`,
      )
    }
  }
  const now = await checkout.head()
  if (now !== row.to) {
    throw new ServiceRefusal('conflict', `While ${named(row.to)} was built, ${named(now)} was checked out.`)
  }
  progress({ progress: commands.length, total: commands.length + 1, message: 'restarting' })
}
