import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../../../host/src/base/pause.ts'
import { signal } from '../../../host/src/base/processes.ts'
import { type Answer, ask, findProgram } from '../../../host/src/base/programs.ts'
import type { OciOptions } from '../../../host/src/sandboxes/oci.ts'

/** Engines of a test's own, with everything they keep in a temporary folder, gone afterwards. */
export interface EngineRig {
  options: OciOptions
  /** the engine itself, past the sandbox */
  ask(...args: string[]): Promise<Answer>
  process: ChildProcess | undefined
  restart(): Promise<void>
  stop(): Promise<void>
}

/** undefined: it cannot be had here */
export async function startDockerEngine(): Promise<EngineRig | undefined> {
  const dockerd = findProgram('dockerd')
  if (process.getuid?.() !== 0 || !dockerd || !findProgram('docker')) return undefined
  const home = mkdtempSync(join(tmpdir(), 'hatchway-docker-'))
  const socket = `unix://${home}/docker.sock`
  const environment = { ...process.env, DOCKER_HOST: socket, DOCKER_CONFIG: join(home, 'config') }
  const options: OciOptions = { environment, graceMs: 500 }
  let daemon: ChildProcess | undefined
  let output = ''

  const begin = async () => {
    const started = spawn(
      dockerd,
      [
        ...['--iptables=false', '--ip6tables=false', '--bridge=none', '--storage-driver=overlay2'],
        ...['--data-root', join(home, 'data'), '--exec-root', join(home, 'exec')],
        ...['-H', socket, '--pidfile', join(home, 'pid')],
      ],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    )
    daemon = started
    started.stdout.on('data', chunk => {
      output += chunk
    })
    started.stderr.on('data', chunk => {
      output += chunk
    })
    const answers = async () =>
      started.exitCode !== null ||
      (await ask('docker', ['version'], { timeoutMs: 2000, environment })).code === 0
    if (!(await until(30_000, answers)) || started.exitCode !== null)
      throw new Error(`dockerd did not come up: ${output.slice(-2000)}`)
  }
  const end = async () => {
    const ending = daemon
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return
    const over = new Promise(resolve => ending.once('exit', resolve))
    ending.kill('SIGCONT')
    ending.kill('SIGTERM')
    await over
  }
  await begin()
  return {
    options,
    ask: (...args) => ask('docker', args, { timeoutMs: 20_000, environment }),
    get process() {
      return daemon
    },
    async restart() {
      await end()
      // Killed by force it leaves numbers of processes that are dead, for which it would wait.
      for (const left of ['pid', 'exec/containerd/containerd.pid']) rmSync(join(home, left), { force: true })
      await begin()
    },
    async stop() {
      await end()
      await clear(home)
    },
  }
}

export async function preparePodman(): Promise<EngineRig | undefined> {
  if (process.getuid?.() !== 0 || !findProgram('podman') || !findProgram('runc')) return undefined
  const home = mkdtempSync(join(tmpdir(), 'hatchway-podman-'))
  mkdirSync(join(home, 'run'))
  writeFileSync(join(home, 'containers.conf'), '[engine]\nruntime="runc"\n')
  const globalArguments = [
    ...['--root', join(home, 'root'), '--runroot', join(home, 'run')],
    '--events-backend=file',
  ]
  const environment = { ...process.env, CONTAINERS_CONF: join(home, 'containers.conf') }
  const podman = (...args: string[]) =>
    ask('podman', ['--cgroup-manager=cgroupfs', ...globalArguments, ...args], {
      timeoutMs: 20_000,
      environment,
    })
  return {
    options: { environment, globalArguments, graceMs: 500 },
    ask: podman,
    process: undefined,
    restart: () => Promise.resolve(),
    stop: async () => {
      await podman('rm', '--all', '--force')
      await clear(home)
    },
  }
}

/** An engine leaves programs and mounts behind when it is killed, or when its own clean-up is still at work. All name its folder. */
export async function clear(home: string): Promise<void> {
  await until(10_000, async () => {
    for (const pid of readdirSync('/proc').map(Number).filter(Number.isInteger))
      if (pid !== process.pid && commandLine(pid).includes(home)) signal(pid, 'SIGKILL')
    await ask('sh', ['-c', `grep -o '${home}[^ ]*' /proc/mounts | sort -r | xargs -r umount -l`], {
      timeoutMs: 5000,
    })
    try {
      rmSync(home, { recursive: true, force: true })
      return true
    } catch (error) {
      if (error instanceof Error && 'code' in error) return false
      throw error
    }
  })
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}
