import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { Readable, type Stream } from 'node:stream'
import { until, within } from '../base/pause.ts'
import { platform } from '../base/platform.ts'
import { markedProcesses, markVariable, sealedMarkOf, signal } from '../base/processes.ts'
import { ask, findProgram, lastWords } from '../base/programs.ts'
import { type Cgroups, openCgroups } from './cgroup.ts'
import { exitOf, stillborn, watch } from './child.ts'
import { type HostFiles, hostFiles, parentsOf } from './host-files.ts'
import { closeInherited } from './inherited.ts'
import { watchMemory } from './memory-watch.ts'
import { seccompProgram } from './seccomp.ts'
import type { Sandbox, SandboxCheck, SandboxProcess, SandboxSpec } from './types.ts'

/**
 * A sandbox without a daemon: new namespaces for everything, the host's own programs read-only, started in
 * milliseconds and over when the host is.
 *
 *   host ── bwrap ── bwrap (process 1 inside) ── the run
 *
 * As root, bwrap lays the mounts with root's rights (the data may lie where the agents' user cannot go) and the run
 * then becomes that user. As an ordinary user, bwrap makes a user namespace and the run keeps the host's own user.
 */
export interface BubblewrapOptions {
  program?: string
  /** how long a run may take to end by itself after SIGTERM */
  graceMs?: number
  cgroups?: Cgroups
}

/** Room beside the memory limit: V8 reserves 512 MB for code and each thread's stack counts whole. Measured. */
const reservedMb = 1024
const sharedMemoryMb = 64

const missing = 'There is no program `bwrap` on this machine. On Debian: sudo apt-get install bubblewrap'

const statusDescriptor = 3
const argumentsDescriptor = 4
const firstDataDescriptor = 5

/** What tells of other users and of the kernel's insides. Names of it differ from kernel to kernel. */
const hiddenFiles = [
  'kcore',
  'keys',
  'key-users',
  'latency_stats',
  'sched_debug',
  'timer_list',
  'timer_stats',
]

interface Features {
  version: string
  noUserNamespaces: boolean
  sizedTemporary: boolean
}

interface Trial {
  check: SandboxCheck
  features: Features | undefined
}

export function createBubblewrap(options: BubblewrapOptions = {}): Sandbox {
  const graceMs = options.graceMs ?? 2000
  const cgroups = options.cgroups ?? openCgroups()
  const isRoot = process.getuid?.() === 0
  const live = new Set<string>()
  const bwrap = () => findProgram(options.program ?? 'bwrap')
  let tried: Promise<Trial> | undefined

  async function trial(): Promise<Trial> {
    const fail = (reason: string): Trial => ({ check: { available: false, reason }, features: undefined })
    if (!platform.runsLinuxPrograms) return fail('bubblewrap exists only for Linux.')
    const program = bwrap()
    if (!program) return fail(missing)
    if (!seccompProgram())
      return fail(
        `What agents must not ask the kernel for is known by number for x64 and arm64 only, and this is ${process.arch}. Use docker or podman.`,
      )
    if (!findProgram('prlimit') || !findProgram('setpriv'))
      return fail('`prlimit` or `setpriv` is missing. On Debian: sudo apt-get install util-linux')
    const help = await ask(program, ['--help'], { timeoutMs: 5000 })
    const version = await ask(program, ['--version'], { timeoutMs: 5000 })
    const features = {
      version: version.stdout.trim(),
      noUserNamespaces: help.stdout.includes('--disable-userns'),
      sizedTemporary: help.stdout.includes('--size '),
    }
    if (!features.sizedTemporary)
      return fail(
        `${features.version} is too old: it has no option --size to bound temporary files. 0.8 is known to work.`,
      )
    const answer = await tryOnce(program, features)
    if (answer !== undefined) return fail(`${features.version} does not work here: ${answer}`)
    const limited = isRoot ? cgroups.limited : []
    const memory = limited.includes('memory') ? 'memory' : 'memory (looked at every second)'
    const limits = [...new Set([memory, 'processes', 'temporary files', ...limited])]
    const unlimited = limited.includes('processors') ? '' : ' The processors are not limited.'
    const reason = `${features.version} works. Limited: ${limits.join(', ')}.${unlimited}`
    return { check: { available: true, reason }, features }
  }

  /** The same way as a run, with a program that does nothing. */
  async function tryOnce(program: string, features: Features): Promise<string | undefined> {
    const spec: SandboxSpec = {
      installation: 'check',
      runId: String(process.pid),
      group: { folder: 'check' },
      command: ['/bin/sh', '-c', 'exit 0'],
      workingDirectory: '/',
      environment: {},
      mounts: [],
      image: undefined,
      user: { uid: 1000, gid: 1000 },
      limits: { memoryMb: 64, processes: 16, cpus: 1, temporaryMb: 1 },
    }
    const started = launch(program, features, spec)
    if (!(await within(10_000, started.exited))) {
      await started.kill()
      return 'it did not answer within 10 s.'
    }
    const { code, signal: name, problem } = await started.exited
    if (code === 0) return undefined
    const hint = platform.inContainer
      ? 'This is a container, whose engine may forbid it to make namespaces and to mount: units/docker-compose.yml names the options that allow it. Agents can also run in containers beside this one: docs/operations.md.'
      : isRoot
        ? 'May this user make namespaces and mount?'
        : 'Ordinary users may be forbidden to make user namespaces: see kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns.'
    return `${problem ?? `it ended with ${code ?? name}`} ${hint}`
  }

  function launch(program: string, features: Features, spec: SandboxSpec): SandboxProcess {
    closeInherited()
    const user = isRoot ? spec.user : { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
    const files = hostFiles(user)
    const filter = seccompProgram()
    if (!filter) throw new Error('bubblewrap was started on a machine for which there is no filter')
    const cgroup =
      isRoot && cgroups.limited.length > 0
        ? cgroups.create(spec.installation, spec.runId, spec.limits)
        : undefined
    const limited = cgroup ? cgroups.limited : []
    // Process 1 inside is bwrap with its command line, so what names the host's paths is read from a pipe instead.
    const hidden = [
      ...isolation(isRoot, features, user),
      ...view(files, spec, user),
      ...['--seccomp', String(firstDataDescriptor + files.made.length)],
      ...['--json-status-fd', String(statusDescriptor)],
    ]
    const data = [
      Buffer.from(hidden.map(word => `${word}\0`).join('')),
      ...files.made.map(({ content }) => Buffer.from(content)),
      filter,
    ]
    const args = [
      ...['--args', String(argumentsDescriptor), '--'],
      ...limitsInside(spec, limited, isRoot, user),
      ...(isRoot ? become(user) : []),
      // The directory may be the run's user's alone, and bwrap has no right to enter it once it is set up.
      ...[findProgram('env') ?? 'env', '-C', spec.workingDirectory],
      ...(spec.command ?? []),
    ]
    // A shell enters the cgroup and then becomes bwrap, so that there is no moment outside of it.
    const enter =
      'for f in $HATCHWAY_ENTER; do echo 0 > "$f" || exit 125; done; unset HATCHWAY_ENTER; exec "$@"'
    const child = spawn('/bin/sh', ['-c', enter, 'sh', program, ...args], {
      env: {
        [markVariable]: sealedMarkOf('bubblewrap', spec.installation, spec.runId),
        HATCHWAY_ENTER: cgroup?.entrances.join(' ') ?? '',
      },
      cwd: '/',
      stdio: ['pipe', 'pipe', 'pipe', 'pipe', ...data.map(() => 'pipe' as const)],
    })
    const watched = watch(child)
    fillPipes(child, data)
    const status = readStatus(child.stdio[statusDescriptor])
    let tooMuch = false
    const unwatch = limited.includes('memory')
      ? () => {}
      : watchMemory(status.process, spec.limits.memoryMb, () => {
          tooMuch = true
          const inside = status.process()
          if (inside !== undefined) signal(inside, 'SIGKILL')
        })

    live.add(spec.runId)
    const exited = watched.ended.then(async ({ code, signal: name, failure }) => {
      unwatch()
      const exhausted = tooMuch || (cgroup?.outOfMemory() ?? false)
      await cgroup?.remove()
      live.delete(spec.runId)
      if (exhausted)
        return exitOf(
          code,
          name,
          `The run used more than its ${spec.limits.memoryMb} MB of memory and was ended.`,
        )
      if (failure !== undefined || (status.exitCode() === undefined && name === null)) {
        const reason = failure ?? lastWords(watched.tail())
        return exitOf(code, name, `bubblewrap could not start the run: ${reason || `it ended with ${code}`}`)
      }
      return exitOf(code, name)
    })
    const left = () => markedProcesses('bubblewrap', spec.installation, spec.runId)
    return {
      name: String(child.pid ?? ''),
      stdin: watched.stdin,
      stdout: watched.stdout,
      stderr: watched.stderr,
      exited,
      async kill() {
        if (!watched.hasEnded()) {
          await until(1000, () => status.process() !== undefined || watched.hasEnded())
          const inside = status.process()
          if (inside !== undefined) {
            // Process 1 takes no SIGTERM from outside; what it has started does.
            for (const entry of platform.processes())
              if (entry.parent === inside) signal(entry.pid, 'SIGTERM')
            await within(graceMs, watched.ended)
            // With process 1 the kernel ends everything in its namespace.
            if (!watched.hasEnded()) signal(inside, 'SIGKILL')
          }
          if (!(await within(inside === undefined ? 1 : 3000, watched.ended))) child.kill('SIGKILL')
        }
        await until(5000, () => {
          const rest = left()
          for (const { pid } of rest) signal(pid, 'SIGKILL')
          return rest.length === 0
        })
        await within(5000, exited)
      },
    }
  }

  return {
    name: 'bubblewrap',
    isolated: true,
    hasImages: false,
    async check() {
      tried = trial()
      return (await tried).check
    },
    async start(spec) {
      if (spec.command === undefined)
        return stillborn(
          '',
          'bubblewrap runs no images. Name a command, or use docker or podman for this group.',
        )
      tried ??= trial()
      const { check, features } = await tried
      const program = bwrap()
      if (!features || !program) {
        // Whatever was wrong may have been mended by the next time.
        tried = undefined
        return stillborn('', program ? check.reason : missing)
      }
      return launch(program, features, spec)
    },
    async endOrphans(installation) {
      const runs = new Set<string>(isRoot ? await cgroups.endOrphans(installation, live) : [])
      await until(10_000, () => {
        const orphans = markedProcesses('bubblewrap', installation).filter(({ runId }) => !live.has(runId))
        for (const { pid, runId } of orphans) {
          runs.add(runId)
          signal(pid, 'SIGKILL')
        }
        return orphans.length === 0
      })
      return [...runs]
    },
  }
}

function isolation(isRoot: boolean, features: Features, user: { uid: number; gid: number }): string[] {
  // What becoming another user takes; given up by doing so.
  const needed = ['CAP_SETUID', 'CAP_SETGID', 'CAP_SETPCAP'].flatMap(name => ['--cap-add', name])
  const own = ['--unshare-user', '--uid', String(user.uid), '--gid', String(user.gid)]
  return [
    ...['--unshare-ipc', '--unshare-pid', '--unshare-net', '--unshare-uts', '--unshare-cgroup-try'],
    ...['--die-with-parent', '--new-session', '--hostname', 'agent', '--clearenv', '--cap-drop', 'ALL'],
    ...(isRoot ? needed : own),
    ...(!isRoot && features.noUserNamespaces ? ['--disable-userns'] : []),
  ]
}

/** The file system the run sees, from the ground up. */
function view(files: HostFiles, spec: SandboxSpec, user: { uid: number }): string[] {
  const open = (path: string) => ['--perms', '0755', '--dir', path]
  const bind = ({ from, to, writable }: SandboxSpec['mounts'][number]) => [
    writable ? '--bind' : '--ro-bind',
    from,
    to,
  ]
  const temporary = (path: string, megabytes: number) => [
    ...[
      '--perms',
      user.uid === 0 ? '0755' : '1777',
      '--size',
      String(megabytes * 1_048_576),
      '--tmpfs',
      path,
    ],
  ]
  const targets = [...files.mounts, ...spec.mounts].map(({ to }) => to)
  return [
    ...[...new Set([...files.directories, ...parentsOf(targets)])].flatMap(open),
    ...files.links.flatMap(({ at, to }) => ['--symlink', to, at]),
    ...files.mounts.flatMap(bind),
    ...files.made.flatMap(({ path }, index) => [
      ...['--perms', '0444', '--ro-bind-data', String(firstDataDescriptor + index), path],
    ]),
    ...['--proc', '/proc', '--dev', '/dev'],
    ...hiddenFiles
      .map(name => `/proc/${name}`)
      .filter(path => existsSync(path))
      .flatMap(path => ['--ro-bind', '/dev/null', path]),
    // The kernel's settings in /proc/sys belong to whoever has the number 0, and bwrap leaves them writable.
    ...['--remount-ro', '/proc'],
    ...temporary('/dev/shm', sharedMemoryMb),
    ...['--remount-ro', '/dev'],
    ...temporary('/tmp', spec.limits.temporaryMb),
    ...spec.mounts.flatMap(bind),
    ...['--remount-ro', '/', '--chdir', '/'],
    ...Object.entries(spec.environment).flatMap(([name, value]) => ['--setenv', name, value]),
  ]
}

/** What cgroups do not bound is bounded process by process. */
function limitsInside(
  spec: SandboxSpec,
  limited: readonly string[],
  isRoot: boolean,
  user: { uid: number },
): string[] {
  const words = [findProgram('prlimit') ?? 'prlimit', '--core=0:0']
  if (!limited.includes('memory')) {
    const bytes = (spec.limits.memoryMb + reservedMb) * 1_048_576
    words.push(`--data=${bytes}:${bytes}`)
  }
  if (!limited.includes('processes')) {
    // In a user namespace the kernel counts only what is inside. Without, it counts all of that user's processes.
    const others = isRoot ? platform.threadsOf(user.uid) : 0
    const most = spec.limits.processes + others
    words.push(`--nproc=${most}:${most}`)
  }
  return [...words, '--']
}

const become = ({ uid, gid }: { uid: number; gid: number }): string[] => [
  findProgram('setpriv') ?? 'setpriv',
  ...['--reuid', String(uid), '--regid', String(gid), '--clear-groups'],
  ...['--inh-caps=-all', '--bounding-set=-all', '--no-new-privs', '--'],
]

/** bwrap says which process is number 1 inside, and how the run ended if it ever began. */
function readStatus(stream: Stream | null | undefined): {
  process(): number | undefined
  exitCode(): number | undefined
} {
  if (!(stream instanceof Readable)) throw new Error('the status pipe of bubblewrap is missing')
  let text = ''
  stream.setEncoding('utf8')
  stream.on('data', (part: string) => {
    text += part
  })
  const number = (name: string) => {
    const found = new RegExp(`"${name}": *(\\d+)`).exec(text)?.[1]
    return found === undefined ? undefined : Number(found)
  }
  return { process: () => number('child-pid'), exitCode: () => number('exit-code') }
}

function fillPipes(child: ChildProcess, data: readonly Buffer[]): void {
  for (const [index, content] of data.entries()) {
    const pipe = child.stdio[argumentsDescriptor + index]
    if (!pipe || !('end' in pipe)) throw new Error('a pipe to bubblewrap is missing')
    // bwrap that ends before it has read is judged by its exit.
    pipe.on('error', () => {})
    pipe.end(content)
  }
}
