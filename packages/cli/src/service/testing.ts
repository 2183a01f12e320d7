import { execFile } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/**
 * Stand-ins for the programs of a service manager, which cannot run in a test: small scripts in front of PATH that record
 * their calls, answer as their manuals say, and really start and stop what the unit names.
 */
const shared = `#!/bin/sh
here=$(dirname "$0")
echo "$(basename "$0") $*" >> "$here/calls"
name=hatchway
for one; do case "$one" in *.service) name="\${one%.service}" ;; esac; done
pid="$here/$name.pid"
running() { [ -f "$pid" ] && [ -r "/proc/$(cat "$pid")/stat" ] && ! grep -q ') Z ' "/proc/$(cat "$pid")/stat"; }
stop() {
  running && kill "$(cat "$pid")"
  while running; do sleep 0.1; done
  rm -f "$pid"
}
`
const systemctl = `${shared}
unit="$HOME/.config/systemd/user/$name.service"
start() {
  set -a; . "$HOME/.config/$name/environment"; set +a
  env $(sed -n 's/^Environment=//p' "$unit") $(sed -n 's/^ExecStart=//p' "$unit") >> "$here/journal" 2>&1 < /dev/null &
  echo $! > "$pid"
}
[ "$1" = --user ] && shift
case "$1" in
  is-system-running) echo running ;;
  show)
    [ -f "$here/$name.enabled" ] && echo UnitFileState=enabled || echo UnitFileState=disabled
    running && echo ActiveState=active || echo ActiveState=inactive
    echo 'ActiveEnterTimestamp=Wed 2026-11-18 05:13:10 UTC'
    echo 'ExecMainExitTimestamp=Tue 2026-11-17 23:00:00 UTC'
    echo ExecMainCode=1
    echo ExecMainStatus=7 ;;
  daemon-reload) ;;
  enable) touch "$here/$name.enabled" ;;
  start) running || start ;;
  restart) stop; start ;;
  disable) rm -f "$here/$name.enabled"; [ "$2" = --now ] && stop ;;
  *) exit 1 ;;
esac
exit 0
`
const loginctl = `${shared}
case "$1" in
  show-user) [ -f "$here/linger" ] && echo Linger=yes || echo Linger=no ;;
  enable-linger) [ -f "$here/no-linger" ] && { echo 'Could not enable linger: Access denied' >&2; exit 1; }; touch "$here/linger" ;;
esac
`
const journalctl = `${shared}
[ -s "$here/journal" ] && cat "$here/journal" || echo '-- No entries --'
`
const launchctl = `${shared}
case "$1" in
  print)
    running || { echo 'Could not find service in domain' >&2; exit 113; }
    printf '\\tstate = running\\n\\tpid = %s\\n\\tlast exit code = 7\\n' "$(cat "$pid")" ;;
  bootout) stop ;;
  bootstrap)
    strings=$(sed -n 's/.*<string>\\(.*\\)<\\/string>.*/\\1/p' "$3")
    data=$(sed -n '/HATCHWAY_DATA/{n;s/.*<string>\\(.*\\)<\\/string>.*/\\1/p;}' "$3")
    log=$(echo "$strings" | tail -n 1)
    HATCHWAY_DATA="$data" $(echo "$strings" | sed -n '2,5p') >> "$log" 2>&1 < /dev/null &
    echo $! > "$pid" ;;
esac
exit 0
`
const xdgOpen = `${shared}`
const scripts = { systemctl, loginctl, journalctl, launchctl, 'xdg-open': xdgOpen }

/** What keeps a daemon small and away from other tests. */
export const quietEnvironment =
  'HATCHWAY_WEB_PORT=0\nHATCHWAY_AGENTS_ENABLED=no\nHATCHWAY_DURABILITY=process\nHATCHWAY_LOG_LEVEL=info\n'

/** A home of its own with an empty data directory, and the stand-ins. */
export function openHome() {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'hatchway-service-')))
  const here = join(home, 'stand-ins')
  const data = join(home, 'data')
  for (const folder of [here, data]) mkdirSync(folder)
  for (const [name, text] of Object.entries(scripts)) writeFileSync(join(here, name), text, { mode: 0o755 })
  for (const name of ['hatchway', 'second']) {
    mkdirSync(join(home, '.config', name), { recursive: true })
    writeFileSync(join(home, '.config', name, 'environment'), quietEnvironment, { mode: 0o644 })
  }
  const env: NodeJS.ProcessEnv = { PATH: `${here}:${process.env.PATH}`, HOME: home, TZ: 'UTC' }
  const run = (program: string, ...args: string[]) =>
    new Promise<{ code: number; out: string; err: string }>(resolve => {
      const child = execFile(program, args, { env, cwd: home, maxBuffer: 2 ** 26 }, (error, out, err) =>
        resolve({ code: typeof error?.code === 'number' ? error.code : error ? -1 : 0, out, err }),
      )
      child.stdin?.end()
    })
  onTestFinished(async () => {
    for (const name of ['hatchway', 'second'])
      await run('systemctl', '--user', 'disable', '--now', `${name}.service`)
    rmSync(home, { recursive: true })
  })
  /** changes that were asked for since the last time */
  const calls = () => {
    const file = join(here, 'calls')
    if (!existsSync(file)) return []
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
    rmSync(file)
    return lines.filter(line => !/ (show|show-user|is-system-running|print) ?/.test(line))
  }
  return { home, here, data, env, run, calls }
}
