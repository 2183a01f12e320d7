import { createHash } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Group, RunStart } from '@hatchway/protocol'
import type { Owner } from '@hatchway/spool'
import type { Logger } from 'pino'
import type { Layout } from '../base/layout.ts'
import type { Owners } from '../base/owners.ts'
import type { Config } from '../config.ts'
import { inside, mountsFor } from '../sandboxes/mounts.ts'
import { createSentTexts, type SentTexts } from '../sandboxes/sent-texts.ts'
import type { Mount, Sandbox, SandboxProcess, Sidecar } from '../sandboxes/types.ts'
import type { AgentStore } from '../store/agent-types.ts'
import { containerProtocols } from './container-protocols/index.ts'
import { createHatchView } from './hatch-view.ts'
import { keyOf, keyProblem, type ModelHealth, sentenceOf } from './model-gateway/health.ts'

/** From what a run should do to a sandbox that does it: mounts, environment, limits and, where a model is asked, its socket. */
export type Launch = (start: RunStart, group: Group, sandbox: Sandbox) => Promise<SandboxProcess>

const project = fileURLToPath(new URL('../../../../', import.meta.url))
export const bundlePath: string = join(project, 'packages', 'agent', 'dist', 'agent.mjs')
const modulesInside = '/opt/hatchway/node_modules'
/** shells that ask the host before they run anything */
const shells = join(dirname(bundlePath), 'bin')
const shellsInside = '/opt/hatchway/bin'
/** An agent waits a little longer for a decision than a person may take. */
const decisionMarginMs = 30_000
/** how often the root of a hatch is looked at, where the container writes there */
const lookMs = 200

/** What a plugin gives a group's sandbox beside everything else. */
interface RunMounts {
  seenBy(
    folder: string,
    sandbox: Pick<Sandbox, 'isolated'>,
  ): { mounts: readonly Mount[]; environment: Readonly<Record<string, string>> } | undefined
}

export function createLaunch(options: {
  config: Config
  layout: Layout
  installation: string
  owners: Owners
  store: Pick<AgentStore, 'addUsage'>
  /** is told how requests to the model end */
  health?: Pick<ModelHealth, 'note'>
  environment: NodeJS.ProcessEnv
  log: Logger
  now(): Date
  /** of the group; those that are done, or not there, are left as they are */
  completeTodos?(folder: string, ids: readonly string[]): void
  /** what groups have of repositories; left out: nothing */
  worktrees?: RunMounts | undefined
}): Launch {
  const { config, layout, owners, log } = options

  // Its name is in the mount table of the sandbox, so it does not tell the run's id.
  const runDirectory = (start: RunStart) =>
    join(layout.state, 'runs', createHash('sha256').update(start.run_id).digest('hex').slice(0, 16))

  const modelFor = async (start: RunStart, group: Group, sent: SentTexts | undefined) => {
    const key = keyOf(config, options.environment)
    const problem = keyProblem(config, options.environment)
    if (problem && start.driver.name === 'claude' && containerProtocols[group.dialect].ownRunner) {
      // In a chat the run itself says so, in a moment.
      options.health?.note(start.run_id, group, problem, start.kind === 'chat' ? 'quiet' : undefined)
      throw new Error(sentenceOf(problem, config.model.keyVariable))
    }
    // Which agent a stranger's image runs is its own matter.
    const asksModels = start.driver.name !== 'concierge' || !containerProtocols[group.dialect].ownRunner
    if (!asksModels || problem) return undefined
    // Node's http is fifteen megabytes, and most daemons are idle most of the time.
    const { serveModel } = await import('./model-gateway/socket.ts')
    return serveModel({
      directory: runDirectory(start),
      owner: owners(group.folder),
      url: config.model.url,
      key,
      log,
      listen: sent?.listen,
      onOutcome: outcome => options.health?.note(start.run_id, group, outcome),
      onUsage: ({ model, inputTokens, outputTokens }) =>
        options.store.addUsage({
          group: group.folder,
          day: options.now().toISOString().slice(0, 10),
          model,
          requests: 1,
          inputTokens,
          outputTokens,
        }),
    })
  }

  return async (start, group, sandbox) => {
    const protocol = containerProtocols[group.dialect]
    const settings = config.groups[group.folder]
    const image = settings?.image ?? config.agents.image
    if (
      !protocol.ownRunner &&
      (image === undefined || sandbox.name === 'bubblewrap' || sandbox.name === 'process')
    ) {
      throw new Error(
        `A container of the dialect ${group.dialect} brings its own image: name it in groups.${group.folder}.image, and use docker or podman.`,
      )
    }
    // Other projects' images need it as well: what leads to the model is part of it.
    if (!existsSync(bundlePath)) {
      throw new Error('The agent’s side is not built. Run: npm run build')
    }
    const isIsolated = sandbox.isolated
    // An image brings its own program: a stranger's, or ours built into it.
    const brought = imageFor(config, group, sandbox) !== undefined
    const sent = protocol.mayGoOn ? createSentTexts() : undefined
    const view =
      protocol.rootFiles &&
      createHatchView({
        layout,
        folder: group.folder,
        owner: owners(group.folder),
        ipcAt: protocol.mountPoint,
        snapshots: protocol.rootFiles,
        complete: ids => options.completeTodos?.(group.folder, ids),
      })
    await view?.prepare()
    const model = await modelFor(start, group, sent)
    const mounts = mountsFor({
      layout,
      group,
      owner: owners(group.folder),
      ...(brought ? {} : { bundle: bundlePath, node: process.execPath }),
      ...(model ? { modelDirectory: model.directory } : {}),
      ipcAt: protocol.mountPoint,
      ...(view ? { hatch: view.mounts } : {}),
      requests: settings?.mounts ?? [],
      rules: { allowedFile: config.mountsAllowed, project, data: config.data },
    })
    if (!mounts.ok) {
      await model?.close()
      throw new Error(`The mounts of ${group.folder} cannot be made: ${mounts.problems.join(' ')}`)
    }
    const places = isIsolated
      ? {
          ipc: protocol.mountPoint,
          group: inside.group,
          home: inside.home,
          socket: inside.modelSocket,
          global: inside.global,
        }
      : {
          ipc: join(layout.ipc, group.folder),
          group: join(layout.groups, group.folder),
          home: join(layout.groups, group.folder, '.home'),
          global: join(layout.groups, 'global'),
          socket: join(model?.directory ?? '', 'model.sock'),
        }
    const folder = join(layout.groups, group.folder)
    const repository = options.worktrees?.seenBy(group.folder, sandbox)
    // Claude asks by itself; the concierge runs no commands.
    const shellsAsk = protocol.ownRunner && start.driver.name === 'command' && config.guard.enabled === 'yes'
    const program = isIsolated ? [inside.node, inside.bundle] : [process.execPath, bundlePath]
    let sandboxed: SandboxProcess
    try {
      sandboxed = await sandbox.start({
        installation: options.installation,
        runId: start.run_id,
        group,
        command: brought ? undefined : [...program, 'run'],
        workingDirectory: places.group,
        environment: {
          // A stranger's image has its programs where it has them.
          ...(protocol.ownRunner ? { PATH: '/usr/local/bin:/usr/bin:/bin' } : {}),
          LANG: 'C.UTF-8',
          HOME: places.home,
          HATCHWAY_IPC: places.ipc,
          HATCHWAY_GROUP_DIR: places.group,
          HATCHWAY_GLOBAL_DIR: places.global,
          HATCHWAY_EVENTS: config.events,
          HATCHWAY_LIMITS_FILE_BYTES: String(config.limits.fileBytes),
          HATCHWAY_SHELL_TIMEOUT_MS: String(config.guard.approvalMs + decisionMarginMs),
          ...(shellsAsk ? { HATCHWAY_SHELL_GATE: isIsolated ? shellsInside : shells } : {}),
          ...protocol.environment(start),
          ...repository?.environment,
          ...(model
            ? {
                ANTHROPIC_UNIX_SOCKET: places.socket,
                // Without a network of its own, a port would be open to everybody on this machine.
                ANTHROPIC_BASE_URL: isIsolated ? `http://127.0.0.1:${inside.modelPort}` : 'http://localhost',
                ...(isIsolated && protocol.ownRunner
                  ? { HATCHWAY_MODEL_PORT: String(inside.modelPort) }
                  : {}),
                // The host puts the real one in.
                ANTHROPIC_API_KEY: 'kept-by-the-host',
                IS_SANDBOX: isIsolated ? '1' : '0',
              }
            : {}),
        },
        mounts: [
          ...mounts.mounts,
          ...(protocol.ownRunner ? modulesFor(start) : []),
          ...(shellsAsk && !brought ? [{ from: shells, to: shellsInside, writable: false }] : []),
          ...protocol
            .groupAt(start)
            .filter(to => !repository?.mounts.some(mount => mount.to === to))
            .flatMap(to => [
              { from: folder, to, writable: true },
              { from: join(folder, '.home'), to: `${to}/.home`, writable: true },
            ]),
          ...(repository?.mounts ?? []),
        ],
        image: imageFor(config, group, sandbox),
        ...(model && !protocol.ownRunner ? { sidecar: modelPort(model.directory) } : {}),
        user: userOf(owners(group.folder)),
        limits: config.agents,
      })
    } catch (error) {
      await model?.close()
      throw error
    }
    let isBlocked = false
    const look = () => {
      try {
        view?.look()
        isBlocked = false
      } catch (error) {
        if (!isBlocked) log.warn({ err: error, run: start.run_id }, 'a list of todos could not be looked at')
        isBlocked = true
      }
    }
    const looking = view && setInterval(look, lookMs)
    const tidy = async () => {
      clearInterval(looking)
      look()
      await model?.close()
      rmSync(runDirectory(start), { recursive: true, force: true })
    }
    sandboxed.exited
      .finally(tidy)
      .catch(error => log.warn({ err: error, run: start.run_id }, 'a run’s socket could not be removed'))
    return model && sent ? { ...sandboxed, sent } : sandboxed
  }
}

/** Listens where `ANTHROPIC_BASE_URL` leads, beside an image that has no program of ours. */
export const modelPort = (modelDirectory: string): Sidecar => ({
  command: [inside.node, inside.bundle],
  environment: {
    HATCHWAY_MODEL_PORT: String(inside.modelPort),
    ANTHROPIC_UNIX_SOCKET: inside.modelSocket,
  },
  mounts: [
    { from: process.execPath, to: inside.node, writable: false },
    { from: join(dirname(bundlePath), 'model-port.mjs'), to: inside.bundle, writable: false },
    { from: modelDirectory, to: inside.model, writable: false },
  ],
})

/** Only container engines have images. */
export const imageFor = (
  config: Config,
  { folder }: Pick<Group, 'folder'>,
  { name }: Pick<Sandbox, 'name'>,
): string | undefined =>
  name === 'docker' || name === 'podman' ? (config.groups[folder]?.image ?? config.agents.image) : undefined

export const userOf = (owner: Owner | undefined): { uid: number; gid: number } =>
  owner ?? { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }

/** The Claude Agent SDK is a program of its own and is not in the bundle. */
const modulesFor = (start: RunStart): Mount[] =>
  start.driver.name === 'claude'
    ? [{ from: join(project, 'node_modules'), to: modulesInside, writable: false }]
    : []
