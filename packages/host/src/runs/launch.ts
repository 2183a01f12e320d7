import { existsSync, rmSync } from 'node:fs'
import type { Group, RunStart } from '@hatchway/protocol'
import { type Config, settingsOf } from '../config.ts'
import { createSentTexts } from '../sandboxes/sent-texts.ts'
import type { Sandbox, SandboxProcess } from '../sandboxes/types.ts'
import { containerProtocols } from './container-protocols/index.ts'
import { findDriver } from './driver-packages.ts'
import { drivers } from './drivers.ts'
import { createHatchView, type HatchView } from './hatch-view.ts'
import { failWith, openModel, runDirectory } from './launch/model.ts'
import { bundlePath, sandboxSpec } from './launch/spec.ts'
import type { LaunchedRun, LaunchOptions } from './launch/types.ts'

export { bundlePath, modelPort, userOf } from './launch/spec.ts'

/** Starts the sandbox of a run: mounts, environment, limits and, where a model is asked, its socket. */
export type Launch = (start: RunStart, group: Group, sandbox: Sandbox) => Promise<SandboxProcess>

/** how often the root of a hatch is checked, where the container writes there */
const checkMs = 200

export function createLaunch(options: LaunchOptions): Launch {
  const { layout, log } = options

  return async (start, group, sandbox) => {
    const run = checkedRun(options, start, group, sandbox)
    const sent = run.protocol.mayGoOn ? createSentTexts() : undefined
    const view = viewFor(options, run)
    await view?.prepare()
    const model = await openModel(options, run, sent)
    let started: SandboxProcess
    try {
      started = await sandbox.start(sandboxSpec(options, run, model, view))
    } catch (error) {
      await model?.close()
      throw error
    }
    const stopChecking =
      view &&
      checkRegularly(view, error =>
        log.warn({ err: error, run: start.run_id }, 'the todos that a container completed could not be read'),
      )
    const tidy = async () => {
      stopChecking?.()
      await model?.close()
      rmSync(runDirectory(layout, start), { recursive: true, force: true })
    }
    started.exited
      .finally(tidy)
      .catch(error => log.warn({ err: error, run: start.run_id }, 'a run’s socket could not be removed'))
    return model && sent ? { ...started, sent } : started
  }
}

/** Throws a sentence for people if the run cannot be started as it is configured. */
function checkedRun(options: LaunchOptions, start: RunStart, group: Group, sandbox: Sandbox): LaunchedRun {
  const { config, layout, owners } = options
  const protocol = containerProtocols[group.dialect]
  const image = imageFor(config, group, sandbox)
  if (!protocol.ownRunner && image === undefined) {
    throw new Error(
      `A container of the dialect ${group.dialect} brings its own image: name it in groups.${group.folder}.image, and use docker or podman.`,
    )
  }
  // Other projects' images need it as well: what leads to the model is part of it.
  if (!existsSync(bundlePath)) throw new Error('The agent’s side is not built. Run: npm run build')
  const driver = protocol.ownRunner ? drivers[start.driver.name] : undefined
  const installed = driver?.package && findDriver(layout, start.driver.name)
  if (driver?.package && !installed && image === undefined)
    throw failWith(options, start, group, { cause: 'driver_missing', driver: start.driver.name })
  return { start, group, sandbox, protocol, driver, installed, image, owner: owners(group.folder) }
}

/** The image that a group's runs are started from, if the sandbox has images. */
export const imageFor = (
  config: Config,
  { folder }: Pick<Group, 'folder'>,
  { hasImages }: Pick<Sandbox, 'hasImages'>,
): string | undefined => (hasImages ? (settingsOf(config, folder).image ?? config.agents.image) : undefined)

const viewFor = (
  { layout, completeTodos }: LaunchOptions,
  { group, owner, protocol }: LaunchedRun,
): HatchView | undefined =>
  protocol.rootFiles &&
  createHatchView({
    layout,
    folder: group.folder,
    owner,
    ipcAt: protocol.mountPoint,
    snapshots: protocol.rootFiles,
    complete: ids => completeTodos?.(group.folder, ids),
  })

/** Returns how to stop, with a last check. Of failures in a row only the first is reported. */
function checkRegularly(view: HatchView, failed: (error: unknown) => void): () => void {
  let isFailing = false
  const check = () => {
    try {
      view.scan()
      isFailing = false
    } catch (error) {
      if (!isFailing) failed(error)
      isFailing = true
    }
  }
  const timer = setInterval(check, checkMs)
  return () => {
    clearInterval(timer)
    check()
  }
}
