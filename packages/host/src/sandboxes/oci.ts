import { spawn } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { agentDirectory } from '../base/parts.ts'
import { until, within } from '../base/pause.ts'
import { platform } from '../base/platform.ts'
import { markedProcesses, markVariable, sealedMarkOf, signal } from '../base/processes.ts'
import { type Answer, ask, findProgram, lastWords } from '../base/programs.ts'
import { baseImage } from './base-image.ts'
import { exitOf, stillborn, type Watched, watch } from './child.ts'
import { accountFiles, hostFiles } from './host-files.ts'
import { containerProfile } from './seccomp.ts'
import type {
  Mount,
  Sandbox,
  SandboxCheck,
  SandboxExit,
  SandboxName,
  SandboxProcess,
  SandboxSpec,
  Sidecar,
} from './types.ts'

/**
 * What Docker and Podman have in common: the command line `run`, labels, and how they fail. The engine is asked with
 * a time-out every time, so an engine that hangs becomes a sentence, not a hang of our own.
 */
export interface OciOptions {
  /** the image runs will use, so that `check` can say whether it is there; undefined: made of the host's files */
  image?: string
  /** whose container it is that `check` tries, so that one left by a process that was killed is found and ended */
  installation?: string
  /** directories that runs get parts of; an engine elsewhere is asked whether it has them */
  shared?: readonly string[]
  /**
   * where files of runs are written that the engine mounts; left out, and where the folder above it is missing: among
   * temporary files. A system service has temporary files of its own, which the engine does not see.
   */
  scratch?: string
  program?: string
  /** before the engine's own command, such as `--root` */
  globalArguments?: readonly string[]
  environment?: NodeJS.ProcessEnv
  /** how long a run may take to end by itself after SIGTERM */
  graceMs?: number
  /** how long the engine may take to answer a question */
  answerMs?: number
  /** how long a container may take to begin */
  startMs?: number
}

/** What one engine does in its own way. */
export interface Engine {
  name: SandboxName & ('docker' | 'podman')
  title: string
  /** what to do when it does not answer */
  remedy: string
  /** asks the engine about itself */
  inquiry: readonly string[]
  /** what follows from its answer */
  understand(answer: string): EngineFacts
  /** how a container's label is asked for in a list of containers; they do not agree on it */
  labelInList(name: string): string
  /** more words for `run` */
  runArguments(facts: EngineFacts): readonly string[]
}

export interface EngineFacts {
  version: string
  /** root inside the container is the engine's own ordinary user outside */
  rootIsOurUser: boolean
  /** why it is of no use to us, if so */
  unusable?: string
}

/** The recipe lies beside what goes into the image. */
export const buildImage = (engine: string): string =>
  `Build it with: ${engine} build --tag hatchway-agent ${agentDirectory}, and name it in the configuration: agents.image.`

const labels = {
  installation: 'hatchway.installation',
  group: 'hatchway.group',
  run: 'hatchway.run',
} as const

const profileName = 'seccomp.json'
const besideName = 'The program beside the container, which leads to the model,'
/** Node with the forwarder: 49 MB, of which 39 MB are pages of its program file, and 7 threads on two processors. */
const sidecarLimits = { memoryMb: 128, processes: 32, cpus: 1, temporaryMb: 1 }

/** the start of a run id that only `check` gives; then the time follows */
const trialPrefix = 'trial-'
const longestTrialMs = 600_000
/** In a folder of this name is what a run needs beside its container; it tells whose it is. */
export const scratchPrefix = (engine: string, installation: string): string =>
  `hatchway-run-${createHash('sha256').update(`${engine}/${installation}`).digest('hex').slice(0, 12)}-`
/** how often the processes of a sidecar are looked at */
const watchMs = 500

interface Base {
  user: { uid: number; gid: number }
  image: string
  systemMounts: readonly Mount[]
  problem: string | undefined
}

/** 125 is the engine's; 126 and 127 are, too, when it says so: the program could not be started. */
const isEngineFailure = (code: number | null, said: string) =>
  code === 125 || ((code === 126 || code === 127) && /Error response from daemon|OCI|^Error: /m.test(said))

export function createOci(engine: Engine, options: OciOptions): Sandbox {
  const graceMs = options.graceMs ?? 2000
  const answerMs = options.answerMs ?? 10_000
  const startMs = options.startMs ?? 30_000
  const environment = options.environment ?? process.env
  const live = new Set<string>()
  /** folders of runs of this process */
  const scratches = new Set<string>()
  const images = new Map<string, Promise<string | undefined>>()
  let known: EngineFacts | undefined

  const scratchPlace = () => {
    const place = options.scratch
    if (place === undefined || !existsSync(dirname(place))) return tmpdir()
    mkdirSync(place, { recursive: true, mode: 0o700 })
    return place
  }
  const program = () => findProgram(options.program ?? engine.name)
  const question = (args: readonly string[], input?: Buffer): Promise<Answer> => {
    const path = program()
    if (path === undefined)
      return Promise.resolve({
        code: null,
        stdout: '',
        stderr: '',
        failure: `\`${engine.name}\` is not installed`,
      })
    return ask(path, [...(options.globalArguments ?? []), ...args], {
      timeoutMs: answerMs,
      environment,
      ...(input ? { input } : {}),
    })
  }
  const why = (answer: Answer) =>
    (answer.failure ?? (lastWords(answer.stderr) || `it ended with ${answer.code}`)).replace(/[.?]$/, '')

  /** The engine's facts, or what is wrong with it. */
  async function facts(): Promise<EngineFacts | string> {
    if (program() === undefined) return `There is no program \`${engine.name}\` on this machine.`
    const answer = await question(engine.inquiry)
    if (answer.code !== 0) return `${engine.title} does not answer: ${why(answer)}. ${engine.remedy}`
    try {
      const found = engine.understand(answer.stdout)
      // It may be of use the next time it is asked.
      known = found.unusable === undefined ? found : undefined
      return found
    } catch (error) {
      if (!(error instanceof Error)) throw error
      return `${engine.title} answers in a way that is not understood: ${error.message.slice(0, 200)}`
    }
  }

  async function check(): Promise<SandboxCheck> {
    const found = await facts()
    if (typeof found === 'string') return { available: false, reason: found }
    if (found.unusable !== undefined) return { available: false, reason: found.unusable }
    const missing = options.image === undefined ? undefined : await imageMissing(options.image)
    if (missing !== undefined) return { available: false, reason: missing }
    if (options.image === undefined && !platform.runsLinuxPrograms)
      return {
        available: false,
        reason: `${engine.title} needs an image on this system. ${buildImage(engine.name)}`,
      }
    const failure = await (options.image === undefined ? trial() : unseenFiles(options.image))
    if (failure !== undefined) return { available: false, reason: `${engine.title} answers, but ${failure}` }
    const image = options.image ?? 'made of this machine’s own files'
    return { available: true, reason: `${engine.title} ${found.version} answers. Image: ${image}.` }
  }

  /**
   * An engine beside our container, or in a machine of its own, mounts what it finds under a path, and that need not be what we
   * have there. A folder that we have just made is there only if both see the same files. undefined: they do.
   */
  async function unseenFiles(image: string): Promise<string | undefined> {
    if (platform.runsLinuxPrograms && !platform.inContainer) return undefined
    for (const place of new Set([scratchPlace(), ...(options.shared ?? [])])) {
      const folder = mkdtempSync(join(place, '.hatchway-shared-'))
      const run = `${trialPrefix}${Date.now()}-${randomUUID()}`
      try {
        const made = await question([
          ...['create', '--pull', 'never', '--network', 'none', '--label', `${labels.run}=${run}`],
          // Never started; without a program, an image that names none is refused.
          ...[
            ...mountArgument({ from: folder, to: '/mnt', writable: false }),
            '--entrypoint',
            '/none',
            image,
          ],
        ])
        if (made.code !== 0)
          return `it does not have ${place}: ${why(made)}. It must have this directory under the same path; for a host in a container, docs/operations.md says how.`
        await question(['rm', made.stdout.trim()])
      } finally {
        rmSync(folder, { recursive: true })
      }
    }
    return undefined
  }

  /** An engine may answer and yet run nothing: no user numbers to map, no cgroups. Only a run shows it. */
  async function trial(): Promise<string | undefined> {
    const clearing = clearTrials()
    const started = await start({
      installation: options.installation ?? 'check',
      runId: `${trialPrefix}${Date.now()}-${randomUUID()}`,
      group: { folder: 'check' },
      command: ['/bin/sh', '-c', 'exit 0'],
      workingDirectory: '/',
      environment: {},
      // From a container, an engine outside of it can be reached, which has none of our programs.
      mounts: platform.inContainer ? [{ from: agentDirectory, to: '/opt/hatchway', writable: false }] : [],
      image: undefined,
      user: { uid: process.getuid?.() || 1000, gid: process.getgid?.() || 1000 },
      limits: { memoryMb: 64, processes: 16, cpus: 1, temporaryMb: 1 },
    })
    await clearing
    if (!(await within(startMs, started.exited))) {
      await started.kill()
      return `an empty container did not end within ${startMs / 1000} s.`
    }
    const { code, signal: name, problem } = await started.exited
    if (code === 0) return undefined
    const advice = /source path|no such file/i.test(problem ?? '')
      ? ` An engine outside of this container needs an image. ${buildImage(engine.name)}`
      : ''
    return `${problem ?? `an empty container ended with ${code ?? name}.`}${advice}`
  }

  /** Whoever tried them was killed, and may never start again: no trial takes so long, whosever it is. */
  async function clearTrials(): Promise<void> {
    const all = (await containers([labels.run])) ?? []
    const old = all.filter(({ runId }) => {
      const begun = new RegExp(`^${trialPrefix}(\\d+)-`).exec(runId)?.[1]
      return begun !== undefined && Date.now() - Number(begun) > longestTrialMs
    })
    if (old.length > 0) await remove(old.map(({ id }) => id))
  }

  /** undefined: it is there */
  async function imageMissing(image: string): Promise<string | undefined> {
    const answer = await question(['image', 'inspect', '--format', '{{.Id}}', image])
    if (answer.code === 0) return undefined
    if (answer.code === null || !/no such image|not known|not find/i.test(answer.stderr))
      return `${engine.title} does not answer: ${why(answer)}. ${engine.remedy}`
    return `The image ${image} is not on this machine. Run: ${engine.name} pull ${image}, or build it, or correct \`image\` in the configuration.`
  }

  /** Makes the base image once; undefined: it is there. What failed is tried again the next time. */
  function ensureBase(name: string, archive: Buffer): Promise<string | undefined> {
    const make = async () => {
      const there = await question(['image', 'inspect', '--format', '{{.Id}}', name])
      if (there.code === 0) return undefined
      const made = await question(['import', '-', name], archive)
      if (made.code === 0) return undefined
      images.delete(name)
      return `${engine.title} could not take the base image: ${why(made)}. ${engine.remedy}`
    }
    const before = images.get(name)
    if (before) return before
    const making = make()
    images.set(name, making)
    return making
  }

  /** Containers with our labels, running or not. */
  async function containers(
    filters: readonly string[],
  ): Promise<{ id: string; runId: string }[] | undefined> {
    const format = `{{.ID}} ${engine.labelInList(labels.run)}`
    const answer = await question([
      'ps',
      '--all',
      '--no-trunc',
      ...filters.flatMap(filter => ['--filter', `label=${filter}`]),
      ...['--format', format],
    ])
    if (answer.code !== 0) return undefined
    return answer.stdout
      .split('\n')
      .filter(Boolean)
      .map(line => {
        const [id = '', runId = ''] = line.split(' ')
        return { id, runId }
      })
  }

  /** Killed first: Podman would wait for ten seconds each. */
  const remove = async (ids: readonly string[]) => {
    await question(['kill', ...ids])
    return question(['rm', '--force', '--volumes', ...ids])
  }

  /**
   * Until there are none, or the engine is silent; false: that took too long. Twice nothing: a container whose making
   * was under way when we came is met the second time. `empty` counts those times before.
   */
  const removeAll = (filters: readonly string[], empty: number, onEmpty = () => {}) =>
    until(15_000, async () => {
      const left = await containers(filters)
      if (left === undefined) return true
      if (left.length > 0) await remove(left.map(({ id }) => id))
      else empty++
      if (empty > 0) onEmpty()
      return empty > 1
    })

  /** The engine is gone or silent. What it left running on this machine still carries our mark. */
  const endMarked = (installation: string, runId: string) =>
    until(5000, () => {
      const left = markedProcesses(engine.name, installation, runId)
      for (const { pid } of left) signal(pid, 'SIGKILL')
      return left.length === 0
    })

  async function start(spec: SandboxSpec): Promise<SandboxProcess> {
    const name = `hatchway-${spec.group.folder}-${spec.runId}`
    const found = known ?? (await facts())
    if (typeof found === 'string') return stillborn(name, found)
    if (found.unusable !== undefined) return stillborn(name, found.unusable)
    const path = program()
    if (path === undefined) return stillborn(name, `There is no program \`${engine.name}\` on this machine.`)
    const base = await ground(spec, found)
    if (base.problem !== undefined) return stillborn(name, base.problem)
    // Podman leaves a file named `oom` in the current directory of whoever started a run that took too much memory.
    const scratch = mkdtempSync(join(scratchPlace(), scratchPrefix(engine.name, spec.installation)))
    scratches.add(basename(scratch))
    writeFileSync(join(scratch, profileName), containerProfile())
    const beside = spec.sidecar && (await startSidecar(path, name, spec, spec.sidecar, found, scratch))
    if (beside && 'problem' in beside) {
      rmSync(scratch, { recursive: true, force: true })
      return stillborn(name, beside.problem)
    }
    const systemMounts = [...base.systemMounts, ...accountMounts(base.user, spec, scratch)]
    const args = runArguments(name, spec, { ...base, systemMounts }, found, scratch, beside?.name)
    const child = spawn(path, args, { cwd: scratch, env: environment, stdio: ['pipe', 'pipe', 'pipe'] })
    const watched = watch(child)
    live.add(spec.runId)
    const mine = [`${labels.installation}=${spec.installation}`, `${labels.run}=${spec.runId}`]
    let killed = false
    let neverBegan: string | undefined
    // An engine that has died ends both and answers nothing, which is told in its own way.
    const left = beside?.ended.then(async said => {
      if (watched.hasEnded() || killed || (await question(['kill', name])).code !== 0) return undefined
      return `${besideName} ended before it: ${said}.`
    })

    // A client that waits for a silent engine waits for ever; one that has begun speaks, or is found running.
    const late = setTimeout(async () => {
      const state = await question(['inspect', '--format', '{{.State.Status}}', name])
      if (watched.hasEnded() || (state.code === 0 && state.stdout.trim() !== 'created')) return
      neverBegan = `${engine.title} did not start the container within ${startMs / 1000} s: ${why(state)}. ${engine.remedy}`
      child.kill('SIGKILL')
    }, startMs)
    late.unref()

    const exited = watched.ended.then(async (ended): Promise<SandboxExit> => {
      clearTimeout(late)
      // Ctrl-C in a terminal, and whoever ends our process group, ends the client and leaves what it had made.
      // Some hear the signal and end with a code of their own, so only one that went well is believed.
      if (!killed && neverBegan === undefined && ended.code !== 0) await removeAll(mine, 1)
      await beside?.stop()
      live.delete(spec.runId)
      rmSync(scratch, { recursive: true, force: true })
      const problem = neverBegan ?? (await left) ?? ended.failure
      if (problem !== undefined) return { code: null, signal: null, problem }
      return killed || ended.code === 0
        ? exitOf(ended.code, ended.signal)
        : exitOf(ended.code, ended.signal, await diagnose(ended.code, spec, watched))
    })

    return {
      name,
      stdin: watched.stdin,
      stdout: watched.stdout,
      stderr: watched.stderr,
      exited,
      async kill() {
        killed = true
        if (!watched.hasEnded()) {
          const asked = await question(['kill', '--signal', 'TERM', name])
          if (asked.code === 0) await within(graceMs, watched.ended)
        }
        const gone = await removeAll(mine, watched.hasEnded() ? 1 : 0, () => {
          if (!watched.hasEnded()) child.kill('SIGKILL')
        })
        if (!gone || (await containers(mine)) === undefined) await endMarked(spec.installation, spec.runId)
        if (!watched.hasEnded()) child.kill('SIGKILL')
        await within(5000, exited)
      },
    }
  }

  /** The words after the engine's name. */
  const runArguments = (
    name: string,
    spec: SandboxSpec,
    { user, image, systemMounts }: Base,
    found: EngineFacts,
    scratch: string,
    sharesNetworkOf?: string,
  ): string[] => [
    ...(options.globalArguments ?? []),
    ...['run', '--interactive', '--rm', '--pull', 'never', '--name', name],
    ...labelled(spec),
    ...confinement(spec),
    ...(sharesNetworkOf === undefined
      ? ['--network', 'none', '--hostname', 'agent']
      : ['--network', `container:${sharesNetworkOf}`]),
    ...['--security-opt', `seccomp=${join(scratch, profileName)}`],
    ...engine.runArguments(found),
    ...['--user', `${user.uid}:${user.gid}`, '--workdir', spec.workingDirectory],
    ...[...systemMounts, ...spec.mounts].flatMap(mountArgument),
    ...Object.entries(spec.environment).flatMap(([key, value]) => ['--env', `${key}=${value}`]),
    ...['--env', `${markVariable}=${sealedMarkOf(engine.name, spec.installation, spec.runId)}`],
    ...commandLine(spec.command, image),
  ]

  /**
   * The first of the two containers: it has the network namespace, with nothing but loopback, that the other one joins.
   * It carries the same labels and the same mark, so that whatever ends the run ends it as well.
   */
  async function startSidecar(
    path: string,
    runName: string,
    run: SandboxSpec,
    sidecar: Sidecar,
    found: EngineFacts,
    scratch: string,
  ) {
    const name = `${runName}-beside`
    const spec: SandboxSpec = {
      ...run,
      ...sidecar,
      image: undefined,
      workingDirectory: '/',
      limits: sidecarLimits,
    }
    const base = await ground(spec, found)
    if (base.problem !== undefined) return { problem: base.problem }
    const child = spawn(path, runArguments(name, spec, base, found, scratch), {
      cwd: scratch,
      env: environment,
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    const watched = watch(child)
    live.add(run.runId)
    const reasonOf = ({ code, signal: by, failure }: Awaited<Watched['ended']>) =>
      failure ?? (lastWords(watched.tail()) || `it ended with ${by ?? code}`)
    let watching: NodeJS.Timeout | undefined
    let isDead = false
    const stop = async () => {
      clearInterval(watching)
      // Podman keeps a container that ended while another one still used its network.
      const endedFirst = isDead || watched.hasEnded()
      watched.stdin.end()
      if (!endedFirst && (await within(graceMs, watched.ended))) return
      await remove([name])
      child.kill('SIGKILL')
    }
    const ready = new Promise(resolve => watched.stdout.once('data', resolve))
    const isReady = await within(startMs, Promise.race([ready, watched.ended]))
    if (isReady && !watched.hasEnded()) {
      // Podman says only after twenty seconds that a container has ended whose network another one uses. Its processes
      // are the only ones of this run yet; where they cannot be seen, the engine's word has to do.
      const processes = markedProcesses(engine.name, run.installation, run.runId).flatMap(
        ({ pid }) => platform.process(pid) ?? [],
      )
      const died = new Promise<string>(resolve => {
        watching = setInterval(() => {
          if (processes.every(({ pid, startTime }) => platform.process(pid)?.startTime === startTime)) return
          isDead = true
          clearInterval(watching)
          resolve(lastWords(watched.tail()) || 'its process is gone')
        }, watchMs)
      })
      return { name, ended: Promise.race([watched.ended.then(reasonOf), died]), stop }
    }
    const reason = isReady ? reasonOf(await watched.ended) : `it was not ready within ${startMs / 1000} s`
    await stop()
    live.delete(run.runId)
    return { problem: `${besideName} could not be started: ${reason}.` }
  }

  /** Which image, as whom, and what of the host's system goes over it. */
  async function ground(spec: SandboxSpec, found: EngineFacts): Promise<Base> {
    const user = found.rootIsOurUser ? { uid: 0, gid: 0 } : spec.user
    if (spec.image !== undefined) {
      const problem = await imageMissing(spec.image)
      return { user, image: spec.image, systemMounts: [], problem }
    }
    const files = hostFiles(user)
    const { name, archive } = baseImage(files)
    const nothing = spec.command === undefined ? 'Without an image there must be a command.' : undefined
    const problem = nothing ?? (await ensureBase(name, archive))
    return { user, image: name, systemMounts: files.mounts, problem }
  }

  /** Why it did not end well, where that is the engine's doing; the run's own failures are its own. */
  async function diagnose(
    code: number | null,
    spec: SandboxSpec,
    watched: Watched,
  ): Promise<string | undefined> {
    const said = lastWords(watched.tail())
    const answer = await question(engine.inquiry)
    if (answer.code !== 0 || /error waiting for container|unexpected EOF/.test(said)) {
      known = undefined
      const reason = answer.code === 0 ? 'it was started anew' : why(answer)
      return `${engine.title} stopped while the run was under way: ${reason}. ${engine.remedy}`
    }
    if (/FATAL tini.*exec|catatonit: failed to exec/.test(said))
      return `The program ${spec.command?.[0] ?? 'of the image'} could not be started: ${said}`
    if (isEngineFailure(code, watched.tail())) {
      // What we believe of it may be out of date: an image removed, an engine replaced.
      images.clear()
      known = undefined
      return `${engine.title} could not run the container: ${said || 'no reason was given'}`
    }
    if (code === 137)
      return `The run was killed, most likely because it used more than its ${spec.limits.memoryMb} MB of memory.`
    return undefined
  }

  return {
    name: engine.name,
    isolated: true,
    hasImages: true,
    check,
    start,
    async endOrphans(installation) {
      const runs = new Set<string>()
      const orphaned = ({ runId }: { runId: string }) => !live.has(runId)
      // Again until nothing is found: one whose network another one uses cannot go first.
      await until(15_000, async () => {
        if (program() === undefined) return true
        const found = await containers([`${labels.installation}=${installation}`])
        // Podman's list also fails when a container in it goes meanwhile; only an engine that is silent is given up.
        if (found === undefined) return (await question(engine.inquiry)).code !== 0
        const orphans = found.filter(orphaned)
        for (const { runId } of orphans) runs.add(runId)
        if (orphans.length > 0) await remove(orphans.map(({ id }) => id))
        return orphans.length === 0
      })
      // An engine that was ended by force leaves its containers running without it.
      for (const { runId } of markedProcesses(engine.name, installation).filter(orphaned)) {
        runs.add(runId)
        await endMarked(installation, runId)
      }
      const place = scratchPlace()
      for (const folder of readdirSync(place)) {
        if (!folder.startsWith(scratchPrefix(engine.name, installation)) || scratches.has(folder)) continue
        rmSync(join(place, folder), { recursive: true, force: true })
      }
      return [...runs]
    },
  }
}

/** Root is somebody in every image; the user of a group is in none. */
function accountMounts(user: SandboxSpec['user'], spec: SandboxSpec, scratch: string): readonly Mount[] {
  if (user.uid === 0 && spec.image !== undefined) return []
  return accountFiles(user).map(({ path, content }) => {
    const from = join(scratch, basename(path))
    writeFileSync(from, content)
    chmodSync(from, 0o644)
    return { from, to: path, writable: false }
  })
}

const labelled = (spec: SandboxSpec): string[] =>
  [
    `${labels.installation}=${spec.installation}`,
    `${labels.group}=${spec.group.folder}`,
    `${labels.run}=${spec.runId}`,
  ].flatMap(label => ['--label', label])

function confinement({ limits }: SandboxSpec): string[] {
  const memory = `${limits.memoryMb}m`
  return [
    ...['--read-only', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'],
    // With a cgroup namespace of its own it does not see the container's id in /proc/self/cgroup.
    ...['--cgroupns', 'private', '--memory', memory, '--memory-swap', memory],
    ...['--pids-limit', String(limits.processes)],
    // An engine refuses more processors than there are.
    ...['--cpus', String(Math.min(limits.cpus, availableParallelism()))],
    ...['--tmpfs', `/tmp:rw,exec,nosuid,nodev,size=${limits.temporaryMb}m,mode=1777`],
    // What it prints is ours to keep, within bounds; an engine would keep it all on the disk.
    ...['--log-driver', 'none'],
  ]
}

/** Read as a line of CSV, so a comma or a quote in a path needs quotes. */
function mountArgument({ from, to, writable }: Mount): string[] {
  const field = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)
  const fields = [
    'type=bind',
    field(`source=${from}`),
    field(`target=${to}`),
    ...(writable ? [] : ['readonly']),
  ]
  return ['--mount', fields.join(',')]
}

/** An image may have an entry point of its own, to which our command would only be arguments. */
function commandLine(command: readonly string[] | undefined, image: string): string[] {
  const [program, ...args] = command ?? []
  return program === undefined ? [image] : ['--entrypoint', program, image, ...args]
}
