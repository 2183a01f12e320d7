import { markedProcesses } from '../base/processes.ts'
import { ask, findProgram } from '../base/programs.ts'
import { sandboxOrder } from '../config/names.ts'
import { chooseSandbox, createSandboxes } from '../sandboxes/choose.ts'
import type { SandboxName } from '../sandboxes/types.ts'
import { bad, type DoctorContext, type Finding, good, warning } from './types.ts'

export async function sandboxes({ config }: DoctorContext): Promise<Finding[]> {
  if (config.agents.enabled === 'no') return [good('sandbox', 'No agents are started here.')]
  const { sandbox, driver } = config.agents
  const choice = await chooseSandbox(sandbox, driver, createSandboxes(config), sandboxOrder)
  const considered = choice.considered.map(
    ({ name, available, reason }): Finding => ({
      what: `sandbox ${name}`,
      state: available && name !== 'process' ? 'good' : 'warning',
      says: reason,
    }),
  )
  const says = choice.warning === undefined ? choice.reason : `${choice.reason} ${choice.warning}`
  const inUse =
    choice.sandbox === undefined
      ? bad('sandbox in use', says)
      : choice.warning === undefined
        ? good('sandbox in use', says)
        : warning('sandbox in use', says)
  return [...considered, inUse]
}

const answerMs = 10_000

/** A running daemon has ended what was left over when it began, and knows what is its own. */
export async function orphans({ config, lockOwner, checkup }: DoctorContext): Promise<Finding[]> {
  const installation = checkup?.store?.installation
  if (lockOwner !== 'nobody' || !installation) return []
  const found: { name: SandboxName; runs: number }[] = []
  for (const name of ['docker', 'podman'] as const) {
    const runs = (await containersOf(name, installation)) + markedProcesses(name, installation).length
    if (runs > 0) found.push({ name, runs })
  }
  for (const name of ['bubblewrap', 'process'] as const) {
    const runs = markedProcesses(name, installation).length
    if (runs > 0) found.push({ name, runs })
  }
  if (found.length === 0) return [good('left over', 'No agent of an earlier daemon is still running.')]
  const engines = createSandboxes(config)
  return [
    warning(
      'left over',
      `Agents of an earlier daemon still run: ${found.map(({ name, runs }) => `${runs} in ${name}`).join(', ')}. The next start ends them, or --fix.`,
      async () => {
        const ended: string[] = []
        for (const { name } of found) ended.push(...(await engines[name].endOrphans(installation)))
        return `ended ${ended.length} of them`
      },
    ),
  ]
}

async function containersOf(engine: 'docker' | 'podman', installation: string): Promise<number> {
  const program = findProgram(engine)
  if (program === undefined) return 0
  const answer = await ask(
    program,
    ['ps', '--all', '--quiet', '--filter', `label=hatchway.installation=${installation}`],
    { timeoutMs: answerMs },
  )
  return answer.code === 0 ? answer.stdout.split('\n').filter(line => line !== '').length : 0
}
