import { Failure } from '../failure.ts'

/** What the text of a unit says. */
export interface UnitContent {
  name: string
  node: string
  program: string
  data: string
  config: string | undefined
  /** where the daemon starts; plugins and the configuration may name files relative to it */
  directory: string
  environmentFile: string
  /** of a system service; undefined: a person's own */
  user: string | undefined
  /** a clone that deploys build in */
  clone: string | undefined
  logFile: string
}

/** A line break would begin another setting. */
function plain(text: string): string {
  if (/\p{Cc}/u.test(text)) throw new Failure(`${JSON.stringify(text)} cannot stand in a unit. Rename it.`)
  return text
}
/** % begins a specifier everywhere in a unit. */
const path = (text: string) => plain(text).replaceAll('%', '%%')
const word = (text: string) =>
  /^[\w/.,:@+=-]+$/.test(text) ? text : `"${path(text).replaceAll(/[\\"]/g, '\\$&')}"`
/** Also $ is special in the arguments of a command. */
const argument = (text: string) => word(text).replaceAll('$', '$$$$')

const hardening = ({ name, data, clone }: UnitContent) => `
# What is not needed.${clone === undefined ? '' : ' Deploys write to the checkout: without them, leave its path out here.'}
ProtectSystem=strict
ReadWritePaths=${[data, ...(clone === undefined ? [] : [clone])].map(word).join(' ')}
PrivateTmp=yes
# The user's home is read-only as well; ${clone === undefined ? 'what Node has compiled' : 'what a build fetches'} is kept here.
CacheDirectory=${name}
Environment=${clone === undefined ? `XDG_CACHE_HOME=/var/cache/${name}` : `npm_config_cache=/var/cache/${name}/npm`}
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
KeyringMode=private
# Not set, because agents would no longer start:
#   RestrictNamespaces, PrivateUsers          bubblewrap and rootless Podman are made of namespaces
#   ProtectKernelTunables, ProtectKernelLogs, ProtectProc, ProcSubset
#                                             a /proc of which parts are hidden cannot be mounted in a sandbox
#   ProtectControlGroups                      limits would be gone
#   MemoryDenyWriteExecute                    Node compiles as it runs
#   SystemCallFilter                          mount and unshare are what sandboxes are made with
# Rootless Podman needs newuidmap, which is set-uid: for it, remove NoNewPrivileges, LockPersonality, RestrictRealtime,
# RestrictSUIDSGID and SystemCallArchitectures. With Docker, add: SupplementaryGroups=docker
`

const noHardening = `
UMask=0077
# Not set, because a person's own service manager can only do it in ways that stop sandboxes:
#   ProtectSystem, PrivateTmp                 would need a user namespace, in which Docker's group and newuidmap are lost
#   NoNewPrivileges and what implies it       rootless Podman needs newuidmap, which is set-uid
`

export function systemdUnit(content: UnitContent): string {
  const { node, program, data, config, directory, environmentFile, user } = content
  const isSystem = user !== undefined
  return `[Unit]
Description=Hatchway, the hatch between sandboxed agents and their host
${isSystem ? 'Wants=network-online.target\nAfter=network-online.target\n' : ''}
[Service]
Type=exec
${isSystem ? `User=${plain(user)}\n` : ''}# The supervisor starts the daemon, starts it again when it ends, and goes back to the revision before if a new one
# does not come up. Without npm in between, which would not pass signals on.
ExecStart=${word(node)} ${argument(program)} supervise
WorkingDirectory=${path(directory)}
# Here and not only in the configuration file: with it, the supervisor starts without reading any code of the host's.
Environment=${word(`HATCHWAY_DATA=${data}`)}
${config === undefined ? '' : `Environment=${word(`HATCHWAY_CONFIG=${config}`)}\n`}# Secrets, one NAME=value in each line; mode 0600.
EnvironmentFile=-${path(environmentFile)}

# The supervisor outlives whatever happens to the daemon; should it be killed itself, it goes on where it was.
Restart=always
RestartSec=1
# SIGTERM goes to the supervisor, which gives the daemon a minute to end its sessions.
KillMode=mixed
TimeoutStopSec=75
# An agent that uses up its memory is one run that failed, and not the end of everybody else's.
OOMPolicy=continue
# Limits of sandboxes are control groups below this one.
Delegate=yes
${isSystem ? hardening(content) : noHardening}
[Install]
WantedBy=${isSystem ? 'multi-user.target' : 'default.target'}
`
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }
const string = (text: string) =>
  `<string>${plain(text).replaceAll(/[&<>]/g, sign => entities[sign] ?? sign)}</string>`

export const launchdLabel = (name: string) => `org.hatchway.${name === 'hatchway' ? 'daemon' : name}`

export function launchdPlist(content: UnitContent): string {
  const { name, node, program, data, config, directory, environmentFile, user, logFile } = content
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  ${string(launchdLabel(name))}
${user === undefined ? '' : `  <key>UserName</key>\n  ${string(user)}\n`}  <!-- The supervisor starts the daemon again when it ends. Without npm in between, which would not pass signals on. -->
  <key>ProgramArguments</key>
  <array>
    ${string(node)}
    <!-- Secrets, one NAME=value in each line; mode 0600. -->
    ${string(`--env-file-if-exists=${environmentFile}`)}
    ${string(program)}
    <string>supervise</string>
  </array>
  <key>WorkingDirectory</key>
  ${string(directory)}
  <key>EnvironmentVariables</key>
  <dict>
    <key>HATCHWAY_DATA</key>
    ${string(data)}
${config === undefined ? '' : `    <key>HATCHWAY_CONFIG</key>\n    ${string(config)}\n`}    <!-- launchd gives programs a short PATH; engines are looked for here. -->
    <key>PATH</key>
    <string>/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin</string>
  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <true/>
  <key>ThrottleInterval</key>
  <integer>5</integer>
  <!-- SIGTERM, then a minute for the daemon to end its sessions. -->
  <key>ExitTimeOut</key>
  <integer>75</integer>
  <key>ProcessType</key>
  <string>Background</string>
  <key>Umask</key>
  <integer>63</integer>
  <key>StandardOutPath</key>
  ${string(logFile)}
  <key>StandardErrorPath</key>
  ${string(logFile)}
</dict>
</plist>
`
}

const signs = new Map(Object.entries(entities).map(([sign, entity]) => [entity, sign]))

/** The data directory that a unit names. */
export function dataIn(unit: string): string | undefined {
  const [, inPlist] = /<key>HATCHWAY_DATA<\/key>\s*<string>(.*)<\/string>/.exec(unit) ?? []
  if (inPlist !== undefined) return inPlist.replaceAll(/&\w+;/g, entity => signs.get(entity) ?? entity)
  const [, bare, quoted] = /^Environment=(?:HATCHWAY_DATA=(.*)|"HATCHWAY_DATA=(.*)")$/m.exec(unit) ?? []
  return bare ?? quoted?.replaceAll(/\\([\\"])|%%/g, (_, sign?: string) => sign ?? '%')
}
