import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '../failure.ts'
import { poll } from '../poll.ts'
import type { Machine, Programs } from './machine.ts'
import { launchdLabel, launchdPlist } from './texts.ts'
import type { Manager, Scope } from './types.ts'

/** launchd waits as long for a service to end, as the plist says. */
const stopMs = 80_000

export function createLaunchd(machine: Machine, scope: Scope, name: string): Manager {
  const label = launchdLabel(name)
  const isUser = scope === 'user'
  const domain = isUser ? `gui/${machine.uid}` : 'system'
  const target = `${domain}/${label}`
  const library = join(isUser ? machine.home : machine.root, 'Library')
  const file = join(library, isUser ? 'LaunchAgents' : 'LaunchDaemons', `${label}.plist`)
  const logFile = join(library, 'Logs', `${name}.log`)
  const isLoaded = async (programs: Programs) => (await programs.ask('launchctl', 'print', target)).code === 0
  const stop = async (programs: Programs) => {
    if (!(await isLoaded(programs))) return
    await programs.run('launchctl', 'bootout', target)
    const gone = await poll(async () => ((await isLoaded(programs)) ? undefined : true), {
      everyMs: 200,
      timeoutMs: stopMs,
    })
    if (!gone) throw new Failure(`${label} does not end. See: launchctl print ${target}`)
  }
  return {
    kind: 'launchd',
    scope,
    name,
    file,
    environmentFile: join(
      isUser ? join(machine.home, '.config') : join(machine.root, 'etc'),
      name,
      'environment',
    ),
    logFile,
    text: content => launchdPlist({ ...content, logFile }),
    problem: async () => undefined,
    prepare: async () => {},
    async state(programs) {
      const { code, stdout, failure } = await programs.ask('launchctl', 'print', target)
      if (code === null) throw new Failure(`launchctl does not answer: ${failure}.`)
      const exit = /^\s*last exit code = (\d+)/m.exec(stdout)?.[1]
      return {
        running: code === 0 && /^\s*state = running/m.test(stdout),
        enabled: code === 0 || existsSync(file),
        since: null,
        last_exit: exit === undefined ? null : `exit code ${exit}`,
      }
    },
    async start(programs, before, changed) {
      if (before.running && !changed) return
      await stop(programs)
      await programs.run('launchctl', 'enable', target)
      await programs.run('launchctl', 'bootstrap', domain, file)
    },
    restart: ['launchctl', 'kickstart', '-k', target],
    stop,
    forget: async () => {},
    logs: (lines, follow) => ['tail', '-n', String(lines), ...(follow ? ['-F'] : []), logFile],
  }
}
