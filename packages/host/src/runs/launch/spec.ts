import { join } from 'node:path'
import type { Owner } from '@hatchway/spool'
import { agentDirectory, project } from '../../base/parts.ts'
import { settingsOf } from '../../config.ts'
import { inside, mountsFor } from '../../sandboxes/mounts.ts'
import type { Mount, SandboxSpec, Sidecar } from '../../sandboxes/types.ts'
import type { HatchView } from '../hatch-view.ts'
import { combineHooks } from '../hooks.ts'
import type { ModelSocket } from '../model-gateway/socket.ts'
import type { LaunchedRun, LaunchOptions } from './types.ts'

export const bundlePath: string = join(agentDirectory, 'agent.mjs')
const modulesInside = '/opt/hatchway/node_modules'
/** shells that ask the host before they run anything */
const shells = join(agentDirectory, 'bin')
const shellsInside = '/opt/hatchway/bin'
/** `hatchway`, for agents without MCP */
const commands = join(agentDirectory, 'commands')
const commandsInside = '/opt/hatchway/commands'
const usualPath = '/usr/local/bin:/usr/bin:/bin'
/** An agent waits a little longer for a decision than a person may take. */
const decisionMarginMs = 30_000

export const userOf = (owner: Owner | undefined): { uid: number; gid: number } =>
  owner ?? { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }

/** Listens where `ANTHROPIC_BASE_URL` leads, beside an image that has no program of ours. */
export const modelPort = (modelDirectory: string): Sidecar => ({
  command: [inside.node, inside.bundle],
  environment: {
    HATCHWAY_MODEL_PORT: String(inside.modelPort),
    ANTHROPIC_UNIX_SOCKET: inside.modelSocket,
  },
  mounts: [
    { from: process.execPath, to: inside.node, writable: false },
    { from: join(agentDirectory, 'model-port.mjs'), to: inside.bundle, writable: false },
    { from: modelDirectory, to: inside.model, writable: false },
  ],
})

/** Everything that the sandbox of a run is started with. Throws if its mounts are not permitted. */
export function sandboxSpec(
  options: LaunchOptions,
  run: LaunchedRun,
  model: ModelSocket | undefined,
  view: HatchView | undefined,
): SandboxSpec {
  const { start, group, sandbox, protocol, driver, image, owner } = run
  const places = placesOf(options, run, model)
  const added = combineHooks(options.hooks ?? []).mounts(group.folder, sandbox)
  const program = sandbox.isolated ? [inside.node, inside.bundle] : [process.execPath, bundlePath]
  return {
    installation: options.installation,
    runId: start.run_id,
    group,
    // An image brings its own program: another project's, or ours built into it.
    command: image === undefined ? [...program, 'run'] : undefined,
    workingDirectory: places.group,
    environment: {
      // Another project's image has its programs in places of its own.
      ...(driver ? { PATH: `${sandbox.isolated ? commandsInside : commands}:${usualPath}` } : {}),
      LANG: 'C.UTF-8',
      HOME: places.home,
      HATCHWAY_IPC: places.ipc,
      HATCHWAY_GROUP_DIR: places.group,
      HATCHWAY_GLOBAL_DIR: places.global,
      ...limitsIn(options, run),
      ...protocol.environment(start),
      ...added.environment,
      ...(model ? modelIn(run, places.socket) : {}),
      ...packageIn(run),
    },
    mounts: [...ownMounts(options, run, model, view), ...groupMounts(options, run, added.mounts)],
    image,
    ...(model && !driver ? { sidecar: modelPort(model.directory) } : {}),
    user: userOf(owner),
    limits: options.config.agents,
  }
}

/** Where the run finds its directories: inside a sandbox they have other names. */
function placesOf({ layout }: LaunchOptions, run: LaunchedRun, model: ModelSocket | undefined) {
  const { folder } = run.group
  if (run.sandbox.isolated)
    return {
      ipc: run.protocol.mountPoint,
      group: inside.group,
      home: inside.home,
      global: inside.global,
      socket: inside.modelSocket,
    }
  return {
    ipc: join(layout.ipc, folder),
    group: join(layout.groups, folder),
    home: join(layout.groups, folder, '.home'),
    global: join(layout.groups, 'global'),
    socket: join(model?.directory ?? '', 'model.sock'),
  }
}

const shellsAsk = ({ config }: LaunchOptions, { driver }: LaunchedRun): boolean =>
  driver?.asksThroughShells === true && config.guard.enabled === 'yes'

const limitsIn = (options: LaunchOptions, run: LaunchedRun): Record<string, string> => ({
  HATCHWAY_EVENTS: options.config.events,
  HATCHWAY_LIMITS_FILE_BYTES: String(options.config.limits.fileBytes),
  HATCHWAY_SHELL_TIMEOUT_MS: String(options.config.guard.approvalMs + decisionMarginMs),
  ...(run.sandbox.isolated ? {} : { HATCHWAY_NODE: process.execPath }),
  ...(shellsAsk(options, run) ? { HATCHWAY_SHELL_GATE: run.sandbox.isolated ? shellsInside : shells } : {}),
})

const modelIn = ({ sandbox, driver }: LaunchedRun, socket: string): Record<string, string> => ({
  ANTHROPIC_UNIX_SOCKET: socket,
  // Without a network of its own, a port would be open to everybody on this machine.
  ANTHROPIC_BASE_URL: sandbox.isolated ? `http://127.0.0.1:${inside.modelPort}` : 'http://localhost',
  ...(sandbox.isolated && driver ? { HATCHWAY_MODEL_PORT: String(inside.modelPort) } : {}),
  // The host puts the real one in.
  ANTHROPIC_API_KEY: 'kept-by-the-host',
  IS_SANDBOX: sandbox.isolated ? '1' : '0',
})

/** In a sandbox the package is mounted beside the bundle, where it is found without this. */
const packageIn = ({ sandbox, driver, installed }: LaunchedRun): Record<string, string> =>
  installed && driver?.package && !sandbox.isolated
    ? { [driver.package.variable]: join(installed.modules, driver.package.name) }
    : {}

function ownMounts(
  options: LaunchOptions,
  run: LaunchedRun,
  model: ModelSocket | undefined,
  view: HatchView | undefined,
): Mount[] {
  const { config, layout } = options
  const { group, protocol, installed, image } = run
  const own = mountsFor({
    layout,
    group,
    owner: run.owner,
    ...(image === undefined ? { bundle: bundlePath, node: process.execPath } : {}),
    ...(model ? { modelDirectory: model.directory } : {}),
    ipcAt: protocol.mountPoint,
    ...(view ? { hatch: view.mounts } : {}),
    requests: settingsOf(config, group.folder).mounts ?? [],
    rules: { allowedFile: config.mountsAllowed, project, data: config.data },
  })
  if (!own.ok) throw new Error(`The mounts of ${group.folder} cannot be made: ${own.problems.join(' ')}`)
  const mounts = [...own.mounts]
  if (installed) mounts.push({ from: installed.modules, to: modulesInside, writable: false })
  if (image === undefined) mounts.push({ from: commands, to: commandsInside, writable: false })
  if (shellsAsk(options, run) && image === undefined)
    mounts.push({ from: shells, to: shellsInside, writable: false })
  return mounts
}

/** The group's folder wherever the program inside looks for it, unless a plugin's mount is there. */
function groupMounts(
  { layout }: LaunchOptions,
  { start, group, protocol }: LaunchedRun,
  added: readonly Mount[],
): Mount[] {
  const folder = join(layout.groups, group.folder)
  const free = protocol.groupAt(start).filter(to => !added.some(mount => mount.to === to))
  return [
    ...free.flatMap(to => [
      { from: folder, to, writable: true },
      { from: join(folder, '.home'), to: `${to}/.home`, writable: true },
    ]),
    ...added,
  ]
}
