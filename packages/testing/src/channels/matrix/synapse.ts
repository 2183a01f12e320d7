import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { project } from '../../../../host/src/base/parts.ts'
import { until } from '../../until.ts'

/** A real homeserver of a test file's own, with everything it keeps in a temporary folder, gone afterwards. */
export interface Synapse {
  /** where it listens: no port can be taken by somebody else */
  socket: string
  stop(): Promise<void>
}

const place = join(project, '.cache', 'synapse')

export const missingSynapse = (): string | undefined =>
  existsSync(place) ? undefined : 'Synapse: node scripts/synapse.mjs'

/** Nobody waits for a limit by chance: those that are tested are made by the proxy. */
const unlimited = { per_second: 10_000, burst_count: 10_000 }
const startMs = 120_000
/** It ends the server with the tests, whatever ends them; every Debian has it. */
const guard = 'setpriv'

const configOf = (home: string, socket: string) => ({
  server_name: 'hatch.test',
  listeners: [{ path: socket, type: 'http', x_forwarded: true, resources: [{ names: ['client', 'media'] }] }],
  database: { name: 'sqlite3', args: { database: join(home, 'database') } },
  log_config: join(home, 'log.yaml'),
  media_store_path: join(home, 'media'),
  signing_key_path: join(home, 'signing.key'),
  pid_file: join(home, 'pid'),
  macaroon_secret_key: 'a test',
  form_secret: 'a test',
  report_stats: false,
  suppress_key_server_warning: true,
  trusted_key_servers: [],
  presence: { enabled: false },
  bcrypt_rounds: 4,
  max_upload_size: '1M',
  enable_registration: true,
  enable_registration_without_verification: true,
  rc_message: unlimited,
  rc_registration: unlimited,
  rc_joins: { local: unlimited, remote: unlimited },
  rc_joins_per_room: unlimited,
  rc_invites: { per_room: unlimited, per_user: unlimited, per_issuer: unlimited },
  rc_login: { address: unlimited, account: unlimited, failed_attempts: unlimited },
  rc_key_requests: unlimited,
  rc_room_creation: unlimited,
  rc_media_create: unlimited,
})

/** Its own loader, libraries and Python: nothing of this machine's. */
function command(args: readonly string[]) {
  const [loader] = globSync(join(place, 'usr', 'lib*', 'ld-linux*.so*'))
  const [libc] = globSync(join(place, 'usr', 'lib', '*', 'libc.so.6'))
  const [python] = globSync(join(place, 'usr', 'bin', 'python3.[0-9]*'))
  if (loader === undefined || libc === undefined || python === undefined)
    throw new Error('.cache/synapse is broken. Delete it, and run: node scripts/synapse.mjs')
  return {
    program: loader,
    args: ['--library-path', join(libc, '..'), python, '-m', 'synapse.app.homeserver', ...args],
    env: {
      PATH: process.env.PATH,
      PYTHONHOME: join(place, 'usr'),
      PYTHONPATH: join(place, 'usr', 'lib', 'python3', 'dist-packages'),
    },
  }
}

const answers = (socketPath: string): Promise<boolean> =>
  new Promise(resolve => {
    request({ socketPath, path: '/_matrix/client/versions' }, response => {
      response.resume()
      resolve(response.statusCode === 200)
    })
      .on('error', () => resolve(false))
      .end()
  })

export async function startSynapse(): Promise<Synapse> {
  const home = mkdtempSync(join(tmpdir(), 'hatchway-synapse-'))
  const socket = join(home, 'socket')
  const config = join(home, 'homeserver.yaml')
  // JSON is YAML.
  writeFileSync(config, JSON.stringify(configOf(home, socket)))
  const log = {
    version: 1,
    handlers: { console: { class: 'logging.StreamHandler' } },
    root: { level: 'ERROR', handlers: ['console'] },
  }
  writeFileSync(join(home, 'log.yaml'), JSON.stringify(log))
  const keys = command(['-c', config, '--generate-keys'])
  spawnSync(keys.program, keys.args, { env: keys.env, stdio: 'ignore' })
  const { program, args, env } = command(['-c', config])
  const server: ChildProcess = spawn(guard, ['--pdeathsig', 'TERM', program, ...args], {
    cwd: home,
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let output = ''
  server.stderr?.on('data', chunk => {
    output = `${output}${chunk}`.slice(-4000)
  })
  const over = new Promise<void>(resolve => server.once('exit', () => resolve()))
  const isOver = () => server.exitCode !== null || server.signalCode !== null
  const stop = async () => {
    if (!isOver()) server.kill('SIGTERM')
    await over
    rmSync(home, { recursive: true, force: true })
  }
  try {
    await until('Synapse answers', async () => isOver() || (await answers(socket)), startMs)
    if (isOver()) throw new Error(`Synapse ended: ${output}`)
  } catch (error) {
    await stop()
    throw error
  }
  return { socket, stop }
}
