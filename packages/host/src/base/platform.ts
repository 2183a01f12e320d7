import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
} from 'node:fs'
import { join } from 'node:path'

/**
 * What differs between Linux and macOS. Nothing else in the host and the command line asks for the name of the system, or
 * reads /proc and /sys. (The spool stands alone and has the two lines it needs in its own platform.ts; WSL2 is Linux,
 * and differs in how a browser is opened.) macOS has no /proc: its own programs are asked. They take as long as a small
 * program takes to start, so nothing that runs often may depend on them.
 */
export interface Platform {
  name: 'linux' | 'macos' | 'other'
  /** programs of this machine also run in a container, and bubblewrap can be had */
  runsLinuxPrograms: boolean
  /** this process runs in a container */
  inContainer: boolean
  /** bytes of the longest path that a socket may have: the kernel keeps it in a field of fixed size, with one for its end */
  longestSocketPath: number
  /** changes with every start of the machine; undefined: the system does not tell */
  bootId(): string | undefined
  processes(): ProcessEntry[]
  /** undefined: it does not run; one that has ended and was not waited for does not */
  process(pid: number): ProcessEntry | undefined
  /** the processes that we may look into and that have this variable in their environment */
  withVariable(variable: string): { pid: number; value: string }[]
  /** the file that the standard error of a process goes to; undefined: the system does not tell */
  errorOutput(pid: number): string | undefined
  /** limits on watching directories; undefined: there are none to raise */
  watchLimits(): { watches: number; instances: number; queue: number } | undefined
  /** where limits for groups of processes are set */
  cgroups: string | undefined
  /** our own limits, beyond which no program may be started; undefined: an engine does not start programs of ours */
  limits(): { files: number; processes: number } | undefined
  /** numbers of our open files that programs we start would inherit, as far as the system tells */
  inheritable(): number[]
  /** threads of a user on the whole machine */
  threadsOf(uid: number): number
  /** bytes of memory that a process does not share */
  ownMemory(pid: number): number
  /** makes a directory ours to enter; one that has become a link is left alone, where the system can do that */
  unlockDirectory(path: string | Buffer): void
  /** the program that opens a link in a browser, and its arguments; undefined: there is no desktop */
  opener(environment: NodeJS.ProcessEnv): readonly [string, ...string[]] | undefined
}

export interface ProcessEntry {
  pid: number
  parent: number
  group: number
  /** the program's name, which may be shortened */
  name: string
  /** as the system writes it: with the number it tells a process from every other */
  startTime: string
}

export function createPlatform(system: NodeJS.Platform, root = '/'): Platform {
  if (system === 'linux') return createLinux(root)
  return createMacos(system === 'darwin' ? 'macos' : 'other')
}

function unlessGone<T>(attempt: () => T): T | undefined {
  try {
    return attempt()
  } catch (error) {
    // It has ended, it is somebody else's, or the system has no such thing.
    if (error instanceof Error && ('code' in error || 'status' in error)) return undefined
    throw error
  }
}

/** `root`: tests give another one. */
function createLinux(root: string): Platform {
  const proc = join(root, 'proc')
  const read = (path: string) => unlessGone(() => readFileSync(join(proc, path), 'latin1'))
  const numbers = () => (unlessGone(() => readdirSync(proc)) ?? []).map(Number).filter(Number.isInteger)
  const entry = (pid: number): ProcessEntry | undefined => {
    // The name in brackets may hold spaces and brackets itself.
    const [, name = '', rest = ''] = /^\d+ \((.*)\) (.*)/s.exec(read(`${pid}/stat`) ?? '') ?? []
    const fields = rest.split(' ')
    const [state = '', parent, group] = fields
    if (['', 'Z', 'X'].includes(state)) return undefined
    return { pid, parent: Number(parent), group: Number(group), name, startTime: fields[19] ?? '' }
  }
  const isWsl = /microsoft/i.test(read('sys/kernel/osrelease') ?? '')
  return {
    name: 'linux',
    runsLinuxPrograms: true,
    inContainer: ['.dockerenv', 'run/.containerenv'].some(name => existsSync(join(root, name))),
    longestSocketPath: 107,
    bootId: () => read('sys/kernel/random/boot_id')?.trim(),
    processes: () => numbers().flatMap(pid => entry(pid) ?? []),
    process: entry,
    withVariable(variable) {
      const start = `${variable}=`
      return numbers().flatMap(pid => {
        const found = read(`${pid}/environ`)
          ?.split('\0')
          .find(one => one.startsWith(start))
        return found === undefined ? [] : { pid, value: found.slice(start.length) }
      })
    },
    errorOutput: pid => unlessGone(() => readlinkSync(join(proc, `${pid}/fd/2`))),
    watchLimits() {
      const limit = (name: string) => read(`sys/fs/inotify/${name}`)
      const watches = limit('max_user_watches')
      if (watches === undefined) return undefined
      return {
        watches: Number(watches),
        instances: Number(limit('max_user_instances') ?? 128),
        queue: Number(limit('max_queued_events') ?? 16_384),
      }
    },
    cgroups: join(root, 'sys/fs/cgroup'),
    limits() {
      const limits = read('self/limits') ?? ''
      const hard = (title: string) =>
        Number(new RegExp(`^${title} +\\S+ +(\\d+)`, 'm').exec(limits)?.[1] ?? 1_048_576)
      const largest = Number(read('sys/kernel/pid_max') ?? 32_768)
      return { files: hard('Max open files'), processes: Math.min(hard('Max processes'), largest) }
    },
    inheritable() {
      const closeOnExec = 0o2000000
      return (unlessGone(() => readdirSync(join(proc, 'self/fd'))) ?? []).map(Number).filter(descriptor => {
        // One is missing: that by which they were listed.
        const flags = /^flags:\s*(\d+)/m.exec(read(`self/fdinfo/${descriptor}`) ?? '')?.[1]
        return flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0
      })
    },
    threadsOf(uid) {
      let count = 0
      for (const pid of numbers()) {
        const status = read(`${pid}/status`) ?? ''
        if (Number(/^Uid:\t(\d+)/m.exec(status)?.[1]) !== uid) continue
        count += Number(/^Threads:\t(\d+)/m.exec(status)?.[1] ?? 1)
      }
      return count
    },
    ownMemory(pid) {
      const [, resident = 0, shared = 0] = (read(`${pid}/statm`) ?? '').split(' ').map(Number)
      return Math.max(0, resident - shared) * 4096
    },
    unlockDirectory(path) {
      // A handle that needs no right to read (O_PATH), which Node has no name for.
      const pathOnly = 0o10000000
      let fd: number
      try {
        fd = openSync(path, pathOnly | constants.O_DIRECTORY | constants.O_NOFOLLOW)
      } catch (error) {
        const gone: unknown[] = ['ENOENT', 'ENOTDIR', 'ELOOP']
        if (error instanceof Error && 'code' in error && gone.includes(error.code)) return
        throw error
      }
      try {
        chmodSync(join(proc, `self/fd/${fd}`), 0o700)
      } finally {
        closeSync(fd)
      }
    },
    opener(environment) {
      // Windows has the browser, also where Linux has a desktop of its own.
      if (isWsl) return ['rundll32.exe', 'url.dll,FileProtocolHandler']
      return environment.DISPLAY || environment.WAYLAND_DISPLAY ? ['xdg-open'] : undefined
    },
  }
}

/** Also for systems that are neither: what is asked for here is nearly everywhere, and what is missing is not told. */
function createMacos(name: 'macos' | 'other'): Platform {
  const say = (program: string, ...args: string[]) =>
    unlessGone(() =>
      execFileSync(program, args, {
        encoding: 'latin1',
        maxBuffer: 64 * 1_048_576,
        stdio: ['ignore', 'pipe', 'ignore'],
        env: { ...process.env, LC_ALL: 'C' },
      }),
    ) ?? ''
  const entries = (...which: string[]) =>
    say('ps', ...which, '-o', 'pid=,ppid=,pgid=,stat=,lstart=,comm=')
      .split('\n')
      .flatMap((line): ProcessEntry | [] => {
        const [, pid, parent, group, state, startTime = '', program = ''] =
          /^ *(\d+) +(\d+) +(\d+) +(\S+) +(\S+ +\S+ +\S+ +\S+ +\d{4}) +(.*)$/.exec(line) ?? []
        if (state === undefined || state.startsWith('Z')) return []
        const name = program.slice(program.lastIndexOf('/') + 1)
        return { pid: Number(pid), parent: Number(parent), group: Number(group), name, startTime }
      })
  return {
    name,
    runsLinuxPrograms: false,
    inContainer: false,
    longestSocketPath: 103,
    bootId: () => say('sysctl', '-n', 'kern.bootsessionuuid').trim() || undefined,
    processes: () => entries('-ax'),
    process: pid => entries('-p', String(pid))[0],
    withVariable(variable) {
      // Words of the command line come first, then the environment; a value of ours has no spaces.
      const pattern = new RegExp(`^ *(\\d+) .* ${variable}=(\\S+)`)
      return say('ps', '-axEww', '-o', 'pid=,command=')
        .split('\n')
        .flatMap(line => {
          const [, pid, value] = pattern.exec(line) ?? []
          return value === undefined ? [] : { pid: Number(pid), value }
        })
    },
    errorOutput: pid => /^n(.*)$/m.exec(say('lsof', '-a', '-p', String(pid), '-d', '2', '-Fn'))?.[1],
    watchLimits: () => undefined,
    cgroups: undefined,
    limits: () => undefined,
    inheritable: () => [],
    threadsOf: uid => say('ps', '-U', String(uid), '-o', 'pid=').split('\n').filter(Boolean).length,
    ownMemory: pid => Number(say('ps', '-p', String(pid), '-o', 'rss=')) * 1024,
    unlockDirectory: path => chmodSync(path, 0o700),
    opener: ({ SSH_CONNECTION }) =>
      name === 'macos' && SSH_CONNECTION === undefined && existsSync('/usr/bin/open') ? ['open'] : undefined,
  }
}

export const platform: Platform = createPlatform(process.platform)
