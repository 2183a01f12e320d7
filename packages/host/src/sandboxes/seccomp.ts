/**
 * The system calls that a run does not get, whichever sandbox it has:
 *
 * - sockets other than unix and inet. The network namespace has an empty loopback and nothing else, but families such
 *   as vsock do not belong to a network namespace and reach the hypervisor; others are large interfaces to the kernel.
 *   Netlink is refused too: `os.networkInterfaces()` throws inside, and name lookups do without it.
 * - new namespaces, in which the run would be root again and could reach more of the kernel
 * - a few large interfaces that no agent needs, such as io_uring, bpf and key rings
 * - every call by the numbers of another architecture (i386, x32), which a filter by numbers would not recognise
 *
 * bubblewrap takes a program for the kernel that names what is refused. Engines take a profile that names what is
 * allowed, in place of their own, so ours allows nothing that Docker's does not.
 */
const families = { unix: 1, inet: 2, inet6: 10 } as const

interface Machine {
  audit: number
  /** as container profiles name it */
  profile: string
  /** refused as if the kernel did not know them: libraries then use older calls */
  unknown: readonly number[]
  forbidden: readonly number[]
  namespaces: readonly number[]
  sockets: readonly number[]
  largestCall: number
}

const machines: Partial<Record<NodeJS.Architecture, Machine>> = {
  x64: {
    audit: 0xc000003e,
    profile: 'SCMP_ARCH_X86_64',
    unknown: [435, 425, 426, 427], // clone3 (its flags are out of a filter's sight), io_uring
    forbidden: [308, 248, 249, 250, 321, 323, 298], // setns, add_key, request_key, keyctl, bpf, userfaultfd, perf_event_open
    namespaces: [56, 272], // clone, unshare
    sockets: [41, 53], // socket, socketpair
    largestCall: 0x3fffffff, // above: x32, the same calls under other numbers
  },
  arm64: {
    audit: 0xc00000b7,
    profile: 'SCMP_ARCH_AARCH64',
    unknown: [435, 425, 426, 427],
    forbidden: [268, 217, 218, 219, 280, 282, 241],
    namespaces: [220, 97],
    sockets: [198, 199],
    largestCall: 0x7fffffff,
  },
}

const load = 0x20 // A = word at offset k
const jumpEqual = 0x15
const jumpGreater = 0x25
const jumpBits = 0x45 // A & k
const answer = 0x06

const allow = 0x7fff0000
const refuse = (errno: number) => 0x00050000 | errno
const EPERM = 1
const ENOSYS = 38
const EAFNOSUPPORT = 97
const newUserNamespace = 0x10000000

const offsetOfCall = 0
const offsetOfMachine = 4
const offsetOfFirstArgument = 16

type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number]

/** For bubblewrap, as the kernel reads it; undefined on a machine whose numbers we do not have. */
export function seccompProgram(architecture: NodeJS.Architecture = process.arch): Buffer | undefined {
  const machine = machines[architecture]
  if (!machine) return undefined
  const program: Instruction[] = [
    [load, 0, 0, offsetOfMachine],
    [jumpEqual, 1, 0, machine.audit],
    [answer, 0, 0, refuse(ENOSYS)],
    [load, 0, 0, offsetOfCall],
    [jumpGreater, 0, 1, machine.largestCall],
    [answer, 0, 0, refuse(ENOSYS)],
  ]
  for (const call of machine.unknown) program.push([jumpEqual, 0, 1, call], [answer, 0, 0, refuse(ENOSYS)])
  for (const call of machine.forbidden) program.push([jumpEqual, 0, 1, call], [answer, 0, 0, refuse(EPERM)])
  for (const call of machine.namespaces)
    program.push(
      [jumpEqual, 0, 4, call],
      [load, 0, 0, offsetOfFirstArgument],
      [jumpBits, 0, 1, newUserNamespace],
      [answer, 0, 0, refuse(EPERM)],
      [answer, 0, 0, allow],
    )
  const allowed = Object.values(families)
  for (const call of machine.sockets)
    program.push(
      [jumpEqual, 0, allowed.length + 3, call],
      [load, 0, 0, offsetOfFirstArgument],
      ...allowed.map((family, index): Instruction => [jumpEqual, allowed.length - index, 0, family]),
      [answer, 0, 0, refuse(EAFNOSUPPORT)],
      [answer, 0, 0, allow],
    )
  program.push([answer, 0, 0, allow])

  const bytes = Buffer.alloc(program.length * 8)
  for (const [index, [code, ifTrue, ifFalse, value]] of program.entries()) {
    bytes.writeUInt16LE(code, index * 8)
    bytes.writeUInt8(ifTrue, index * 8 + 2)
    bytes.writeUInt8(ifFalse, index * 8 + 3)
    bytes.writeUInt32LE(value, index * 8 + 4)
  }
  return bytes
}

/** What Linux has for ordinary programs, on all architectures; `clone`, `personality` and sockets have rules of their own. */
const ordinary = `
  accept accept4 access alarm arch_prctl bind brk capget capset chdir chmod chown clock_adjtime64
  clock_getres clock_getres_time64 clock_gettime clock_gettime64 clock_nanosleep
  clock_nanosleep_time64 close close_range connect copy_file_range creat dup dup2 dup3 epoll_create
  epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 execve execveat exit
  exit_group faccessat faccessat2 fadvise64 fadvise64_64 fallocate fchdir fchmod fchmodat fchown
  fchownat fcntl fcntl64 fdatasync fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat
  fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate ftruncate64 futex futex_time64 futex_waitv
  futimesat get_robust_list getcpu getcwd getdents getdents64 getegid geteuid getgid getgroups
  getitimer getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid getresuid
  getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid getxattr
  inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents
  io_pgetevents io_pgetevents_time64 io_setup io_submit ioctl ioprio_get ioprio_set kill
  landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lgetxattr link linkat
  listen listxattr llistxattr lremovexattr lseek lsetxattr lstat lstat64 madvise membarrier
  memfd_create memfd_secret mincore mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap mmap2
  mprotect mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedreceive_time64 mq_timedsend
  mq_timedsend_time64 mq_unlink mremap msgctl msgget msgrcv msgsnd msync munlock munlockall munmap
  nanosleep newfstatat open openat openat2 pause pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc
  pkey_free pkey_mprotect poll ppoll ppoll_time64 prctl pread64 preadv preadv2 prlimit64
  process_vm_readv process_vm_writev pselect6 pselect6_time64 ptrace pwrite64 pwritev pwritev2 read
  readahead readlink readlinkat readv recvfrom recvmmsg recvmmsg_time64 recvmsg removexattr rename
  renameat renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask
  rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64
  rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr
  sched_getparam sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64
  sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp select
  semctl semget semop semtimedop semtimedop_time64 sendfile sendfile64 sendmmsg sendmsg sendto
  set_robust_list set_tid_address setfsgid setfsuid setgid setgroups setitimer setpgid setpriority
  setregid setresgid setresuid setreuid setrlimit setsid setsockopt setuid setxattr shmat shmctl
  shmdt shmget shutdown sigaltstack signalfd signalfd4 splice stat stat64 statfs statfs64 statx
  symlink symlinkat sync sync_file_range sync_file_range2 syncfs sysinfo tee tgkill time
  timer_create timer_delete timer_getoverrun timer_gettime timer_gettime64 timer_settime
  timer_settime64 timerfd_create timerfd_gettime timerfd_gettime64 timerfd_settime timerfd_settime64
  times tkill truncate truncate64 umask uname unlink unlinkat utime utimensat utimensat_time64
  utimes vfork wait4 waitid write writev
`

const newNamespaces = 0x7e020000
const asItIs = 0xffffffff

/**
 * For Docker and Podman. It names no other architecture, so calls by the numbers of one end the process. What is not
 * named is refused as if the kernel did not know it, as are calls that are newer than this list: libraries then use
 * older calls. Docker 20.10 answers EPERM in spite of `defaultErrnoRet`, which they take for an answer; with the
 * architecture named, newer calls get ENOSYS there too. io_uring is older than the newest on the list, so it is named.
 */
export function containerProfile(architecture: NodeJS.Architecture = process.arch): string {
  const machine = machines[architecture]
  const when = (op: string, value: number) => [{ index: 0, value, valueTwo: 0, op: `SCMP_CMP_${op}` }]
  const allowing = (names: readonly string[], args: object[] = []) => ({
    names,
    args,
    action: 'SCMP_ACT_ALLOW',
  })
  const refusing = (names: readonly string[], errnoRet: number, args: object[] = []) => ({
    names,
    args,
    action: 'SCMP_ACT_ERRNO',
    errnoRet,
  })
  const sockets = ['socket', 'socketpair']
  const allowed = new Set<number>(Object.values(families))
  const largest = Math.max(...allowed)
  // One rule for each number: engines do not agree on what several conditions on one argument mean.
  const byFamily = Array.from({ length: largest + 1 }, (_, family) =>
    allowed.has(family)
      ? allowing(sockets, when('EQ', family))
      : refusing(sockets, EAFNOSUPPORT, when('EQ', family)),
  )
  return JSON.stringify({
    defaultAction: 'SCMP_ACT_ERRNO',
    defaultErrnoRet: ENOSYS,
    ...(machine ? { architectures: [machine.profile] } : {}),
    syscalls: [
      allowing(ordinary.trim().split(/\s+/)),
      allowing(['clone'], [{ index: 0, value: newNamespaces, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }]),
      // Its flags are out of a filter's sight; libraries then use `clone`.
      refusing(['clone3', 'io_uring_setup', 'io_uring_enter', 'io_uring_register'], ENOSYS),
      ...[0, asItIs].map(value => allowing(['personality'], when('EQ', value))),
      ...byFamily,
      refusing(sockets, EAFNOSUPPORT, when('GT', largest)),
    ],
  })
}
