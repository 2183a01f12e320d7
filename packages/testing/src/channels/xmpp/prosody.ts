import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from '../../../../host/src/base/programs.ts'
import { freePort, listening } from '../free-port.ts'

/** A real XMPP server of a test's own, with everything it keeps in a temporary folder, gone afterwards. */
export interface Prosody {
  domain: string
  rooms: string
  port: number
  addAccount(name: string, password: string): void
  /** the next deliveries of the assistant fail so */
  refuse(times: number, how: 'limit' | 'failure'): void
  start(): Promise<void>
  /** it ends in the middle of whatever it does */
  kill(): Promise<void>
  close(): Promise<void>
}

export interface ProsodyOptions {
  domain?: string
  /** modules that it does not have: `mam`, `smacks` */
  without?: readonly string[]
  /** encryption is offered and required */
  tls?: { key: string; certificate: string }
}

export const isProsodyMissing = (): boolean => findProgram('prosody') === undefined

/** Refuses what the assistant says as often as the file asks for it. A server does that under load, which is hard to cause. */
const refusing = (file: string) => `
local st = require "util.stanza";
local function refuse(event)
  local stanza, origin = event.stanza, event.origin;
  if origin.username ~= "hatch" or stanza.attr.type == "error" or not stanza:get_child("body") then return end
  local input = io.open(${JSON.stringify(file)});
  if not input then return end
  local first, rest = input:read("*a"):match("^(%w+)\\n(.*)$");
  input:close();
  if not first then return end
  local output = io.open(${JSON.stringify(file)}, "w");
  output:write(rest); output:close();
  if first == "limit" then origin.send(st.error_reply(stanza, "wait", "resource-constraint", "Slow down"));
  else origin.send(st.error_reply(stanza, "cancel", "internal-server-error")); end
  return true;
end
module:hook("pre-message/bare", refuse, 1000);
module:hook("pre-message/full", refuse, 1000);
`

export async function startProsody(options: ProsodyOptions = {}): Promise<Prosody> {
  const program = findProgram('prosody')
  if (program === undefined) throw new Error('prosody is not installed')
  const { domain = 'localhost', without = [], tls } = options
  const home = mkdtempSync(join(tmpdir(), 'hatchway-prosody-'))
  const refusals = join(home, 'refusals')
  const accounts = join(home, 'data', encodedName(domain), 'accounts')
  for (const folder of [accounts, join(home, 'modules')]) mkdirSync(folder, { recursive: true })
  writeFileSync(join(home, 'modules', 'mod_refusing.lua'), refusing(refusals))
  const port = await freePort()
  const web = await freePort()
  const modules = ['roster', 'saslauth', 'disco', 'ping', 'offline', 'carbons', 'mam', 'smacks', 'refusing']
  const config = join(home, 'prosody.cfg.lua')
  const text = (value: string) => JSON.stringify(value)
  writeFileSync(
    config,
    [
      `run_as_root = true; pidfile = ${text(join(home, 'pid'))}; data_path = ${text(join(home, 'data'))}`,
      `interfaces = { "127.0.0.1" }; local_interfaces = { "127.0.0.1" }; c2s_ports = { ${port} }; c2s_direct_tls_ports = {}`,
      `http_ports = { ${web} }; http_interfaces = { "127.0.0.1" }; https_ports = {}`,
      `plugin_paths = { ${text(join(home, 'modules'))} }`,
      `modules_enabled = { ${[...modules, ...(tls ? ['tls'] : [])]
        .filter(one => !without.includes(one))
        .map(text)
        .join(', ')} }`,
      `modules_disabled = { "s2s"${tls ? '' : ', "tls"'} }`,
      `authentication = "internal_plain"; c2s_require_encryption = ${tls !== undefined}`,
      // The library takes seconds for SCRAM on a busy machine; a test with encryption tries it.
      ...(tls ? [] : ['allow_unencrypted_plain_auth = true; disable_sasl_mechanisms = { "SCRAM-SHA-1" }']),
      `certificates = ${text(home)}`,
      ...(tls ? [`ssl = { key = ${text(tls.key)}; certificate = ${text(tls.certificate)} }`] : []),
      'log = { warn = "*console" }',
      `VirtualHost ${text(domain)}`,
      `Component ${text(`rooms.${domain}`)} "muc"`,
      ` modules_enabled = { ${without.includes('mam') ? '' : '"muc_mam"'} }; muc_room_locking = false`,
      `Component ${text(`files.${domain}`)} "http_file_share"`,
      ` http_host = "127.0.0.1"; http_external_url = "http://127.0.0.1:${web}/"`,
      '',
    ].join('\n'),
  )
  let server: ChildProcess | undefined

  const start = async () => {
    const started = spawn(program, ['-F', '--config', config], { stdio: ['ignore', 'pipe', 'pipe'] })
    server = started
    let output = ''
    for (const stream of [started.stdout, started.stderr])
      stream.on('data', chunk => {
        output += chunk
      })
    await listening(port, () =>
      started.exitCode === null ? undefined : `prosody ended: ${output.slice(-2000)}`,
    )
  }
  const kill = async () => {
    const ending = server
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return
    const over = once(ending, 'exit')
    ending.kill('SIGKILL')
    await over
  }
  await start()
  return {
    domain,
    rooms: `rooms.${domain}`,
    port,
    addAccount: (name, password) =>
      writeFileSync(join(accounts, `${name}.dat`), `return { ["password"] = ${text(password)}; };\n`),
    refuse: (times, how) => appendFileSync(refusals, `${how}\n`.repeat(times)),
    start,
    kill,
    async close() {
      await kill()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

/** As Prosody names its folders. */
const encodedName = (domain: string) =>
  domain.replace(/[^A-Za-z0-9]/g, letter => `%${letter.charCodeAt(0).toString(16)}`)
