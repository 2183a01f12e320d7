import { userInfo } from 'node:os'
import { join } from 'node:path'
import { project } from '@hatchway/host/parts'
import { Failure } from '../failure.ts'
import { visible } from '../text.ts'
import type { Machine, Programs } from './machine.ts'
import { systemdUnit } from './texts.ts'
import type { Manager, Scope } from './types.ts'

const properties =
  'UnitFileState,ActiveState,ActiveEnterTimestamp,ExecMainExitTimestamp,ExecMainCode,ExecMainStatus'

const notHere = () =>
  `systemd does not run here. In a container, use ${join(project, 'units', 'docker-compose.yml')}; elsewhere, have what starts programs at boot run: hatchway supervise`

export function createSystemd(machine: Machine, scope: Scope, name: string): Manager {
  const unit = `${name}.service`
  const isUser = scope === 'user'
  const etc = join(machine.root, 'etc')
  const settings = machine.env.XDG_CONFIG_HOME || join(machine.home, '.config')
  const own = isUser ? ['--user'] : []
  const control = (programs: Programs, ...args: string[]) => programs.run('systemctl', ...own, ...args)
  return {
    kind: 'systemd',
    scope,
    name,
    file: isUser ? join(settings, 'systemd/user', unit) : join(etc, 'systemd/system', unit),
    environmentFile: join(isUser ? settings : etc, name, 'environment'),
    logFile: undefined,
    text: content => systemdUnit({ ...content, logFile: '' }),
    async problem(programs) {
      const { code, stdout } = await programs.ask('systemctl', 'is-system-running')
      return code === null || stdout.trim() === 'offline' ? notHere() : undefined
    },
    async prepare(programs, report) {
      if (!isUser) return
      const { username } = userInfo()
      const known = await programs.ask('loginctl', 'show-user', username, '--property=Linger')
      if (known.stdout.trim() === 'Linger=yes') return
      const call = 'loginctl enable-linger'
      await report(`$ ${call}`)
      const { code, stderr, failure } = await programs.ask('loginctl', 'enable-linger')
      if (code !== 0)
        await report(
          `That failed (${visible(failure ?? stderr.trim())}): the service ends when you log out. Have root run: ${call} ${username}`,
        )
    },
    async state(programs) {
      // systemctl prints times in the zone of TZ.
      const { code, stdout, stderr, failure } = await programs.ask(
        'env',
        'TZ=UTC',
        'LC_ALL=C',
        'systemctl',
        ...own,
        'show',
        unit,
        `--property=${properties}`,
      )
      if (code !== 0)
        throw new Failure(`systemctl does not answer: ${failure ?? stderr.trim()}.${busHint(isUser)}`)
      const said = new Map(stdout.split('\n').map(line => splitOnce(line)))
      const running = ['active', 'reloading'].includes(said.get('ActiveState') ?? '')
      return {
        running,
        enabled: said.get('UnitFileState') === 'enabled',
        since: running ? instant(said.get('ActiveEnterTimestamp')) : null,
        last_exit: exitOf(said),
      }
    },
    async start(programs, before, changed) {
      if (changed) await control(programs, 'daemon-reload')
      if (!before.enabled) await control(programs, 'enable', unit)
      if (changed) await control(programs, 'restart', unit)
      else if (!before.running) await control(programs, 'start', unit)
    },
    restart: ['systemctl', ...own, 'restart', unit],
    stop: async programs => void (await control(programs, 'disable', '--now', unit)),
    forget: async programs => void (await control(programs, 'daemon-reload')),
    logs: (lines, follow) => [
      'journalctl',
      isUser ? `--user-unit=${unit}` : `--unit=${unit}`,
      '--output=cat',
      '--no-pager',
      `--lines=${lines}`,
      ...(follow ? ['--follow'] : []),
    ],
  }
}

const busHint = (isUser: boolean) =>
  isUser
    ? ' A session that su or sudo opened has no service manager: log in as that user, for example over ssh.'
    : ''

function splitOnce(line: string): [string, string] {
  const at = line.indexOf('=')
  return [line.slice(0, at), line.slice(at + 1)]
}

/** From `Wed 2026-11-18 05:20:33 UTC`. */
function instant(text = ''): string | null {
  const [, day, time] = /(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC/.exec(text) ?? []
  return day === undefined ? null : `${day}T${time}Z`
}

/** ExecMainCode is the kernel's CLD_ number: 1 exited, 2 killed, 3 dumped core. */
function exitOf(said: ReadonlyMap<string, string>): string | null {
  const at = instant(said.get('ExecMainExitTimestamp'))
  if (at === null) return null
  const how = said.get('ExecMainCode') === '1' ? 'exit code' : 'signal'
  return `${how} ${said.get('ExecMainStatus')} at ${at}`
}
