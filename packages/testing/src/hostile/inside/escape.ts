import { spawnSync } from 'node:child_process'
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Attack, places, succeeds } from './attack.ts'

/**
 * Ways out. Each is tried and written down; those that lead somewhere say where. What it may see by design (its own
 * processes, the system's programs) is no way out.
 */
export async function ways(attack: Attack): Promise<void> {
  const { ledger, known, random } = attack
  const tried = (what: string, got?: string | undefined) =>
    ledger.write(got === undefined ? { kind: 'tried', what } : { kind: 'tried', what, got })
  /** undefined: it failed, as it has to */
  const attempt = (what: string, work: () => string | undefined) => {
    let got: string | undefined
    succeeds(() => {
      got = work()
    })
    tried(what, got)
  }
  const read = (path: string) => readFileSync(path, 'latin1').slice(0, 200)

  while (!attack.isOver()) {
    // Where other things are on the host.
    for (const path of known.paths) {
      for (const way of [
        '',
        '/proc/self/root',
        '/proc/1/root',
        '/proc/self/cwd/../../..',
        '/proc/thread-self/root',
      ])
        attempt(`read ${path} by ${way || 'name'}`, () => read(`${way}${path}`))
      const link = join(places.group, `out-${random.below(1e6)}`)
      attempt(`read ${path} by a link`, () => {
        symlinkSync(path, link)
        try {
          return read(link)
        } finally {
          unlinkSync(link)
        }
      })
      attempt(`write ${path}`, () => {
        writeFileSync(path, 'owned')
        return 'written'
      })
      attempt(`list ${path}`, () => readdirSync(path).join())
    }
    for (const path of [
      '/etc/shadow',
      '/root',
      '/proc/kcore',
      '/proc/kallsyms',
      '/dev/mem',
      '/dev/sda',
      '/dev/vda',
      '/dev/kmsg',
      '/sys/firmware',
      '/sys/kernel/security',
      '/var/run/docker.sock',
      '/run/docker.sock',
      '/run/containerd/containerd.sock',
      '/run/systemd/private',
      '/run/dbus/system_bus_socket',
    ])
      attempt(`open ${path}`, () => {
        const isRoots = path === '/proc/kallsyms'
        if (isRoots) return /^(?!0+ )[0-9a-f]+ /m.test(read(path)) ? 'addresses' : undefined
        if (path.endsWith('.sock')) return existsSync(path) ? 'is there' : undefined
        if (readdirSafely(path).length > 0) return 'listed'
        return read(path) === '' ? undefined : 'read'
      })
    for (const path of [
      '/proc/sys/kernel/core_pattern',
      '/proc/sys/kernel/hostname',
      '/proc/sysrq-trigger',
      '/proc/sys/vm/drop_caches',
      '/sys/fs/cgroup/release_agent',
      '/sys/kernel/uevent_helper',
      '/sys/fs/cgroup/memory/memory.limit_in_bytes',
      '/sys/fs/cgroup/memory.max',
      '/sys/fs/cgroup/cgroup.procs',
      '/proc/1/oom_score_adj',
      '/proc/self/uid_map',
    ])
      attempt(`open ${path} to write`, () => {
        if (path === '/proc/1/oom_score_adj') {
          // Of its own first process, which it may have; less than now needs a right.
          writeFileSync(path, '-1000')
          return 'written'
        }
        openSync(path, 'w')
        // Opening some of these is allowed to everybody; writing is what counts.
        writeFileSync(path, '0 0 1')
        return 'written'
      })
    // Processes that are not its own.
    for (const pid of known.pids) {
      attempt(`signal ${pid}`, () => {
        if (!isOthers(pid)) return undefined
        process.kill(pid, 'SIGTERM')
        return 'signalled'
      })
      attempt(`look into ${pid}`, () => (isOthers(pid) ? read(`/proc/${pid}/environ`) : undefined))
    }
    for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
      attempt(`environment of ${pid}`, () =>
        /ANTHROPIC_API_KEY=(?!kept-by-the-host)\S/.test(readFileSync(`/proc/${pid}/environ`, 'utf8'))
          ? 'a key'
          : undefined,
      )
      attempt(`handles of ${pid}`, () => {
        const found = readdirSync(`/proc/${pid}/fd`).flatMap(fd => {
          try {
            return [readlinkSync(`/proc/${pid}/fd/${fd}`)]
          } catch {
            return []
          }
        })
        const outside = found.filter(path => known.paths.some(place => path.startsWith(place)))
        return outside.length > 0 ? outside.join() : undefined
      })
    }
    attempt('the command line of the first process', () => {
      const line = readFileSync('/proc/1/cmdline', 'utf8')
      return known.paths.find(path => line.includes(path))
    })
    // More rights.
    const programs: [string, string[]][] = [
      // Processes of its own may be traced, and the first one it sees is.
      ...known.pids.filter(isOthers).flatMap((pid): [string, string[]][] => [
        ['/usr/bin/strace', ['-p', String(pid), '-o', '/dev/null', '-c']],
        ['/usr/bin/perl', ['-e', `exit(syscall(101, 16, ${pid}, 0, 0) < 0)`]],
      ]),
      ['/usr/bin/unshare', ['--user', '--map-root-user', '/bin/true']],
      ['/usr/bin/unshare', ['--mount', '/bin/true']],
      ['/usr/bin/unshare', ['--net', '/bin/true']],
      ['/usr/bin/mount', ['-t', 'tmpfs', 'none', places.group]],
      ['/usr/bin/mount', ['--bind', '/', places.group]],
      ['/usr/bin/umount', [`${places.ipc}/tasks`]],
      ['/usr/bin/umount', ['-l', '/workspace/ipc']],
      ['/usr/bin/mount', ['-o', 'remount,rw', '/workspace/ipc']],
      ['/usr/bin/nsenter', ['--target', '1', '--mount', '/bin/true']],
      ['/usr/sbin/chroot', ['/', '/bin/true']],
      ['/usr/bin/su', ['-c', 'true']],
      ['/usr/bin/sudo', ['-n', 'true']],
      ['/usr/bin/mknod', [join(places.group, 'device'), 'b', '254', '0']],
      ['/usr/bin/perl', ['-e', 'exit(syscall(248, "user", "hatchway", "x", 1, -4) < 0)']],
      ['/usr/bin/perl', ['-e', 'exit(syscall(250, 1, 0) < 0)']],
      ['/usr/bin/perl', ['-e', 'use Socket; exit(!socket(my $s, PF_INET, SOCK_RAW, 1))']],
      // Sockets that are neither unix nor inet: netlink, packet, vsock and whatever else this kernel has.
      [
        '/usr/bin/perl',
        ['-e', 'for my $f (0, 3..9, 11..45) { for (1..5) { exit 0 if socket(my $s, $f, $_, 0) } } exit 1'],
      ],
      ['/usr/bin/perl', ['-e', 'exit(syscall(321, 5, 0, 0) < 0)']],
      ['/usr/bin/perl', ['-e', 'exit(syscall(298, pack("LL", 1, 112), 0, -1, -1, 0) < 0)']],
      ['/usr/bin/perl', ['-e', 'exit(syscall(425, 8, pack("x128")) < 0)']],
      ['/usr/bin/perl', ['-e', 'exit(syscall(323, 1) < 0)']],
      ['/usr/bin/perl', ['-e', 'exit(syscall(304, -100, "x", 0) < 0)']],
      ['/usr/bin/perl', ['-e', 'exit(syscall(175, "x", 1, "") < 0)']],
      ['/usr/bin/perl', ['-e', 'exit(syscall(246, 0, 0, 0, 0) < 0)']],
      ['/usr/bin/perl', ['-e', 'exit(syscall(167, "/tmp", 0) < 0)']],
      ['/usr/bin/perl', ['-e', 'exit(syscall(310, 1, pack("QQ",0,0), 0, pack("QQ",0,0), 0, 0) < 0)']],
    ]
    for (const [program, args] of programs) {
      if (!existsSync(program)) {
        tried(`${program} ${args.join(' ')}`)
        continue
      }
      const { status, error } = spawnSync(program, args, { stdio: 'ignore', timeout: 2000 })
      tried(`${program} ${args.join(' ')}`, status === 0 && error === undefined ? 'done' : undefined)
    }
    attempt('become root', () => {
      process.setuid?.(0)
      return process.getuid?.() === 0 ? 'root' : undefined
    })
    attempt('a program with root’s rights', () => {
      const path = join(places.group, 'root-program')
      writeFileSync(path, '#!/bin/sh\n')
      chownSync(path, 0, 0)
      chmodSync(path, 0o4755)
      return 'made'
    })
    attempt('the capabilities it has', () => {
      const found = /^CapEff:\s+0*([1-9a-f][0-9a-f]*)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
      return found
    })
    attempt('new rights are ruled out', () =>
      /^NoNewPrivs:\s+1/m.test(readFileSync('/proc/self/status', 'utf8')) ? undefined : 'they are not',
    )
    attempt('the hatch’s own place is writable', () => {
      accessSync(places.ipc, constants.W_OK)
      return 'it is'
    })
    // The network, and every socket there is.
    attempt('interfaces', () => {
      const found = [...readFileSync('/proc/net/dev', 'utf8').matchAll(/^ *([^ :]+):/gm)]
        .map(([, name]) => name)
        .filter(name => name !== 'lo')
      return found.length > 0 ? found.join() : undefined
    })
    attempt('routes', () => {
      const [, ...routes] = readFileSync('/proc/net/route', 'utf8').trim().split('\n')
      return routes[0]
    })
    const addresses: (string | { host: string; port: number })[] = [
      ...['127.0.0.1', 'localhost', '::ffff:127.0.0.1', '0.0.0.0'].map(host => ({ host, port: known.port })),
      '/var/run/docker.sock',
      '\0hatchway',
      ...known.paths.map(path => join(path, 'api.sock')),
    ]
    for (const address of addresses) {
      const got = await new Promise<string | undefined>(resolve => {
        const socket = typeof address === 'string' ? connect(address) : connect(address)
        socket.setTimeout(200, () => socket.destroy())
        socket.on('connect', () => {
          resolve('connected')
          socket.destroy()
        })
        socket.on('error', () => resolve(undefined))
        socket.on('close', () => resolve(undefined))
      })
      tried(`connect to ${JSON.stringify(address)}`, got)
    }
    await sleep(50)
  }
}

const readdirSafely = (path: string): string[] => {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

/** A number outside is another process's inside: one of its own sees what it sees. */
const isOthers = (pid: number): boolean =>
  existsSync(`/proc/${pid}`) && !existsSync(`/proc/${pid}/root/workspace/ipc`)

/** Everything within its reach is ended: its runner, and whatever else would hear it. */
export async function signals(attack: Attack): Promise<void> {
  for (const pid of attack.known.pids)
    if (isOthers(pid) && succeeds(() => process.kill(pid, 'SIGKILL')))
      attack.ledger.write({ kind: 'tried', what: `end ${pid}`, got: 'signalled' })
  attack.ledger.write({ kind: 'tried', what: 'signal everything' })
  for (const name of ['SIGSTOP', 'SIGUSR1', 'SIGHUP'] as const) {
    succeeds(() => process.kill(process.ppid, name))
    await sleep(100)
  }
  succeeds(() => process.kill(-1, 'SIGKILL'))
}

/** The socket of the model: other paths, other words, too many and too large, and none at all. */
export async function model(attack: Attack): Promise<void> {
  const path = join(places.model, 'model.sock')
  const { random, known } = attack
  const requests = [
    'GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n',
    'GET /admin HTTP/1.1\r\nhost: x\r\n\r\n',
    'GET /v1/../admin HTTP/1.1\r\nhost: x\r\n\r\n',
    'GET /v1/%2e%2e/admin HTTP/1.1\r\nhost: x\r\n\r\n',
    `GET http://127.0.0.1:${known.port}/v1/x HTTP/1.1\r\nhost: x\r\n\r\n`,
    `CONNECT 127.0.0.1:${known.port} HTTP/1.1\r\nhost: x\r\n\r\n`,
    `GET /v1/x HTTP/1.1\r\nhost: 127.0.0.1:${known.port}\r\n\r\n`,
    `GET //127.0.0.1:${known.port}/v1/x HTTP/1.1\r\nhost: x\r\n\r\n`,
    'GET /v1/x HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n',
    'DELETE /v1/files/1 HTTP/1.1\r\nhost: x\r\n\r\n',
    'POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /admin HTTP/1.1\r\nhost: x\r\n\r\n',
    `POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: mine\r\nauthorization: Bearer mine\r\ncontent-length: 2\r\n\r\n{}`,
    `GET /v1/${'x'.repeat(100_000)} HTTP/1.1\r\nhost: x\r\n\r\n`,
    'POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\nx',
    '\0\0\0\0',
    'GET /v1/slow HTT',
  ]
  const one = (request: string) =>
    new Promise<void>(resolve => {
      const socket = connect(path)
      let heard = ''
      const leave = () => {
        socket.destroy()
        if (/sk-hostile/.test(heard))
          attack.ledger.write({ kind: 'tried', what: 'the key by the model socket', got: 'the key' })
        resolve()
      }
      socket.setTimeout(300, leave)
      socket.on('data', chunk => {
        heard = (heard + chunk.toString('latin1')).slice(-100_000)
      })
      socket.on('error', leave)
      socket.on('close', leave)
      socket.write(request)
    })
  while (!attack.isOver()) await Promise.all(Array.from({ length: 40 }, () => one(random.pick(requests))))
}
