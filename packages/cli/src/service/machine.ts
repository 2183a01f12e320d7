import { homedir } from 'node:os'
import { type Platform, platform } from '@hatchway/host/platform'
import { Failure } from '../failure.ts'
import { visible } from '../text.ts'

/** Where a service is set up. Tests give another root, home and PATH. */
export interface Machine {
  platform: Platform['name']
  uid: number
  home: string
  /** in front of the paths that belong to the system */
  root: string
  env: NodeJS.ProcessEnv
}

export function thisMachine(): Machine {
  const uid = process.getuid?.() ?? -1
  // Without this variable, systemctl does not find the person's own service manager; cron and sudo leave it out.
  const env = { XDG_RUNTIME_DIR: `/run/user/${uid}`, ...process.env }
  return { platform: platform.name, uid, home: homedir(), root: '/', env }
}

interface Answer {
  /** null: it could not be started, or was ended */
  code: number | null
  stdout: string
  stderr: string
  failure?: string
}

/** Programs of the system, by name: systemctl, launchctl, loginctl, id, npm. */
export interface Programs {
  /** asks something; whatever comes back is the answer */
  ask(program: string, ...args: string[]): Promise<Answer>
  /** changes something: the call is reported, and a failure is thrown with what the program said */
  run(program: string, ...args: string[]): Promise<string>
}

/** Says what was done. */
export type Report = (line: string) => Promise<void>

const timeoutMs = 10 * 60_000

export async function createPrograms(env: NodeJS.ProcessEnv, report: Report): Promise<Programs> {
  const host = await import('@hatchway/host/api')
  const ask: Programs['ask'] = (program, ...args) => host.ask(program, args, { timeoutMs, environment: env })
  return {
    ask,
    async run(program, ...args) {
      const call = [program, ...args].join(' ')
      await report(`$ ${visible(call)}`)
      const { code, stdout, stderr, failure } = await ask(program, ...args)
      if (code === 0) return stdout
      const reason = failure ?? (stderr.trim() || stdout.trim() || `exit code ${code}`)
      throw new Failure(`\`${call}\` failed: ${reason}`)
    },
  }
}
