import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { findProgram } from '../../../../host/src/base/programs.ts'
import { until } from '../../until.ts'

/**
 * Real mail servers of a test's own: Dovecot for IMAP and for handing in mail (submission, with passwords and TLS), and
 * OpenSMTPD, which takes mail from other servers, checks who it is from, and delivers it into the mailboxes. Debian's OpenSMTPD
 * 6.8 cannot do TLS with the OpenSSL it comes with, so it is Dovecot that does. All that they keep is in a temporary folder.
 */
export interface MailServers {
  ports: Ports
  /** PEM, of the certificate that signs itself */
  certificate: string
  /** the mails in somebody's mailbox, as they were delivered, in any order */
  mails(address: string): readonly string[]
  /** how many there are */
  count(address: string): number
  /** whether all that was handed in is in the mailboxes */
  isDelivered(): boolean
  /** SMTP answers to the next mails that are handed in */
  refuse(...answers: readonly string[]): void
  /** the mailbox is numbered anew, as after a restored backup */
  renumber(address: string): Promise<void>
  up(): Promise<void>
  down(): Promise<void>
  close(): Promise<void>
}

type Ports = Record<'imap' | 'imaps' | 'submission' | 'submissions' | 'mx' | 'unchecked', number>

export const authserv = 'mx.agents.test'
/** everybody's */
export const password = 'a pässword: 1'
/** nobody, who owns the mailboxes */
const owner = 65534

const dovecotParts = ['/usr/lib/dovecot/submission', '/usr/lib/dovecot/imap', '/usr/lib/dovecot/dovecot-lda']

/** What this machine lacks; undefined: nothing. */
export function missingForMail(): string | undefined {
  if (!findProgram('dovecot') || !dovecotParts.every(part => existsSync(part)))
    return 'dovecot-imapd and dovecot-submissiond'
  if (!findProgram('smtpd')) return 'opensmtpd'
  if (!findProgram('openssl')) return 'openssl'
  return process.getuid?.() === 0 ? undefined : 'to run as root, as OpenSMTPD does'
}

/** Below those that outgoing connections get: a server that is started again finds its port free. */
async function freePorts(count: number): Promise<number[]> {
  const found: number[] = []
  while (found.length < count) {
    const port = 20_000 + Math.floor(Math.random() * 12_000)
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
    if ((await promise) && !found.includes(port)) found.push(port)
  }
  return found
}

const dovecotConfig = (home: string, ports: Ports, more: string) => `
base_dir = ${home}/base
state_dir = ${home}/base
log_path = ${home}/dovecot.log
protocols = imap submission
listen = 127.0.0.1
hostname = ${authserv}
ssl = yes
ssl_cert = <${home}/cert.pem
ssl_key = <${home}/key.pem
disable_plaintext_auth = no
auth_failure_delay = 0
mail_location = maildir:${home}/mail/%u
first_valid_uid = 1
passdb {
  driver = passwd-file
  args = scheme=plain username_format=everybody ${home}/users
}
userdb {
  driver = static
  args = uid=${owner} gid=${owner} home=${home}/mail/%u allow_all_users=yes
}
service imap-login {
  inet_listener imap {
    port = ${ports.imap}
  }
  inet_listener imaps {
    port = ${ports.imaps}
    ssl = yes
  }
}
submission_relay_host = 127.0.0.1
submission_relay_port = ${ports.mx}
service submission-login {
  inet_listener submission {
    port = ${ports.submission}
  }
  inet_listener submissions {
    port = ${ports.submissions}
    ssl = yes
  }
}
service auth {
  unix_listener auth-userdb {
    mode = 0666
  }
}
service stats {
  unix_listener stats-writer {
    mode = 0666
  }
}
${more}
`

const filterProgram = join(import.meta.dirname, 'checks.process.ts')

const smtpdConfig = (home: string, ports: Ports) => `
table everybody { "@" = "nobody" }
proc checks "${process.execPath} ${filterProgram} ${authserv} ${home}/refusals" user "root" group "root"
filter checks proc checks
listen on 127.0.0.1 port ${ports.mx} hostname ${authserv} filter checks
listen on 127.0.0.1 port ${ports.unchecked} hostname ${authserv}
action deliver mda "/usr/lib/dovecot/dovecot-lda -c ${home}/dovecot.conf -f '<%{sender}>' -d '%{rcpt}'" virtual <everybody> user nobody
match from any for domain "nowhere.test" reject
match from any for any action deliver
`

/** OpenSMTPD has fixed places for its queue and its socket: in a mount namespace of its own they are others. */
const smtpdScript = (home: string) =>
  `mount --bind ${home}/spool /var/spool && mount --bind ${home}/run /run && exec smtpd -d -f ${home}/smtpd.conf`

/** `dovecot`: more of its configuration. Everybody has a mailbox, whatever their address is. */
export async function startMail(options: { dovecot?: string } = {}): Promise<MailServers> {
  const home = mkdtempSync(join(tmpdir(), 'hatchway-mail-'))
  chmodSync(home, 0o755)
  for (const folder of ['base', 'mail', 'run', 'spool', 'spool/smtpd']) mkdirSync(join(home, folder))
  chmodSync(join(home, 'spool', 'smtpd'), 0o711)
  chownSync(join(home, 'mail'), owner, owner)
  const [imap = 0, imaps = 0, submission = 0, submissions = 0, mx = 0, unchecked = 0] = await freePorts(6)
  const ports: Ports = { imap, imaps, submission, submissions, mx, unchecked }
  const certificate = ['-days', '2', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  execFileSync(
    'openssl',
    ['req', '-x509', ...key, ...certificate, '-keyout', `${home}/key.pem`, '-out', `${home}/cert.pem`],
    { stdio: 'ignore' },
  )
  writeFileSync(
    join(home, 'users'),
    `everybody:{PLAIN.b64}${Buffer.from(password).toString('base64')}::::::\n`,
  )
  writeFileSync(join(home, 'refusals'), '')
  // What delivers mail writes there, too, as the mailboxes' owner.
  writeFileSync(join(home, 'dovecot.log'), '')
  chmodSync(join(home, 'dovecot.log'), 0o666)
  writeFileSync(join(home, 'dovecot.conf'), dovecotConfig(home, ports, options.dovecot ?? ''))
  writeFileSync(join(home, 'smtpd.conf'), smtpdConfig(home, ports))

  const running: ChildProcess[] = []
  let output = ''
  const begin = (program: string, args: readonly string[]) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', text => {
        output = `${output}${text}`.slice(-5000)
      })
    running.push(child)
  }
  const answers = async (port: number, greeting: RegExp) => {
    const { connect } = await import('node:net')
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const socket = connect(port, '127.0.0.1')
    socket.once('data', text => resolve(greeting.test(String(text))))
    socket.once('error', () => resolve(false))
    socket.once('close', () => resolve(false))
    const isThere = await promise
    socket.destroy()
    return isThere
  }
  const up = async () => {
    if (running.length > 0) return
    begin('dovecot', ['-F', '-c', join(home, 'dovecot.conf')])
    begin('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', smtpdScript(home)])
    await until('the mail servers answer', async () => {
      if (running.some(({ exitCode }) => exitCode !== null)) throw new Error(`a mail server ended: ${output}`)
      return (
        (await answers(ports.imap, /^\* OK/)) &&
        (await answers(ports.mx, /^220/)) &&
        (await answers(ports.submission, /^220/))
      )
    })
  }
  const down = async () => {
    const ending = running.splice(0)
    await Promise.all(
      ending.map(child => {
        const { promise, resolve } = Promise.withResolvers<void>()
        child.once('exit', () => resolve())
        if (child.exitCode !== null || child.signalCode !== null) resolve()
        // Dovecot's own children serve their clients for many seconds after it has ended.
        const children = child.spawnfile === 'dovecot' ? childrenOf(child.pid) : []
        child.kill('SIGTERM')
        for (const pid of children) killIfThere(pid)
        return promise
      }),
    )
  }
  const filesIn = (folder: string): string[] =>
    existsSync(folder)
      ? readdirSync(folder, { recursive: true, withFileTypes: true })
          .filter(entry => entry.isFile())
          .map(entry => join(entry.parentPath, entry.name))
      : []
  const filesOf = (address: string) =>
    ['new', 'cur'].flatMap(folder => filesIn(join(home, 'mail', address, folder)))
  await up()
  return {
    ports,
    certificate: readFileSync(join(home, 'cert.pem'), 'utf8'),
    mails: address => whileItChanges(() => filesOf(address).map(path => readFileSync(path, 'latin1'))),
    // One that is moved meanwhile is seen at both places, by the same name.
    count: address =>
      whileItChanges(() => new Set(filesOf(address).map(path => basename(path).replace(/[:,].*/, ''))).size),
    isDelivered: () =>
      whileItChanges(() =>
        ['queue', 'incoming'].every(folder => filesIn(join(home, 'spool', 'smtpd', folder)).length === 0),
      ),
    refuse: (...some) => writeFileSync(join(home, 'refusals'), some.join('\n')),
    async renumber(address) {
      await down()
      for (const name of ['dovecot-uidlist', 'dovecot-uidvalidity', 'dovecot.index', 'dovecot.index.log'])
        rmSync(join(home, 'mail', address, name), { force: true })
      await up()
    },
    up,
    down,
    async close() {
      await down()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

/** Files are moved while they are read: it is begun anew then. */
function whileItChanges<T>(read: () => T): T {
  for (;;) {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
    }
  }
}

function childrenOf(pid: number | undefined): number[] {
  const path = `/proc/${pid}/task/${pid}/children`
  return existsSync(path) ? readFileSync(path, 'utf8').split(' ').filter(Boolean).map(Number) : []
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}
