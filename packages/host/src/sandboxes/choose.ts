import { join } from 'node:path'
import { layoutOf } from '../base/layout.ts'
import { sandboxOrder } from '../config/names.ts'
import type { Config } from '../config.ts'
import { createBubblewrap } from './bubblewrap.ts'
import { createDocker } from './docker.ts'
import type { OciOptions } from './oci.ts'
import { createPodman } from './podman.ts'
import { createProcessSandbox } from './process.ts'
import type { Sandbox, SandboxName } from './types.ts'

interface Considered {
  name: SandboxName
  available: boolean
  reason: string
}

export interface Choice {
  /** undefined: nothing this machine has may be used; `reason` says what to do */
  sandbox: Sandbox | undefined
  reason: string
  /** stays on screen for as long as the sandbox is in use */
  warning: string | undefined
  considered: readonly Considered[]
}

export interface SandboxesOptions {
  /** see `OciOptions` */
  installation?: string
  docker?: OciOptions
  podman?: OciOptions
  /** how long a run that is ended may take before it is killed; for those without an engine */
  graceMs?: number
}

export function createSandboxes(
  config: Pick<Config, 'agents' | 'data'>,
  options: SandboxesOptions = {},
): Readonly<Record<SandboxName, Sandbox>> {
  const { installation, graceMs } = options
  const grace = graceMs === undefined ? {} : { graceMs }
  const common = {
    shared: [config.data],
    scratch: join(layoutOf(config.data).state, 'runs'),
    ...(config.agents.image === undefined ? {} : { image: config.agents.image }),
    ...(installation === undefined ? {} : { installation }),
  }
  return {
    docker: createDocker({ ...common, ...options.docker }),
    podman: createPodman({ ...common, ...options.podman }),
    bubblewrap: createBubblewrap(grace),
    process: createProcessSandbox(grace),
  }
}

const unprotected =
  'Agents run WITHOUT a sandbox: whatever they start can read and change everything this user can.'

/**
 * Which sandbox runs get. `process` isolates nothing: by itself it is taken only for the concierge, which runs no
 * model and no commands; for any other driver only where the configuration names it (promise 9: closed by default).
 */
export async function chooseSandbox(
  wanted: SandboxName | 'auto',
  driver: Config['agents']['driver'],
  sandboxes: Readonly<Record<SandboxName, Sandbox>>,
  /** only what may be chosen is looked at, unless others are asked for */
  looksAt: readonly SandboxName[] = wanted === 'auto' ? sandboxOrder : [wanted],
): Promise<Choice> {
  const considered = await Promise.all(
    looksAt.map(async name => ({ name, ...(await checkSandbox(sandboxes[name])) })),
  )
  const chosen = (name: SandboxName, reason: string): Choice => {
    const sandbox = sandboxes[name]
    return { sandbox, reason, warning: sandbox.isolated ? undefined : unprotected, considered }
  }
  const nothing = (reason: string): Choice => ({ sandbox: undefined, reason, warning: reason, considered })

  if (wanted !== 'auto') {
    const found = considered.find(({ name }) => name === wanted)
    if (found?.available) return chosen(wanted, `${wanted}, as configured. ${found.reason}`)
    return nothing(`The configured sandbox ${wanted} cannot be used: ${found?.reason}`)
  }
  const safest = considered.find(({ name, available }) => available && sandboxes[name].isolated)
  if (safest) return chosen(safest.name, `${safest.name}, the safest this machine has. ${safest.reason}`)
  const advice =
    '`hatchway doctor` says why each of them does not work. On Debian, install one with: sudo apt-get install bubblewrap'
  if (driver === 'concierge')
    return chosen(
      'process',
      `process: this machine has no sandbox, and the concierge runs neither a model nor commands. ${advice}`,
    )
  return nothing(
    `This machine has no sandbox, and the driver ${driver} is not run without one unless \`agents.sandbox\` is \`process\`. ${advice}`,
  )
}

/** Whether it can be used now, and why not. Never rejects. */
export const checkSandbox = async (sandbox: Sandbox): Promise<{ available: boolean; reason: string }> => {
  try {
    return await sandbox.check()
  } catch (error) {
    // One engine that answers nonsense must not keep the others from being used.
    const reason = error instanceof Error ? error.message : String(error)
    return { available: false, reason: `It could not be checked: ${reason}` }
  }
}
