import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { reasonOf } from '@hatchway/spool'
import { ownerFor } from '../base/owners.ts'
import { within } from '../base/pause.ts'
import { ask, lastWords } from '../base/programs.ts'
import { settingsOf } from '../config.ts'
import { containerProtocols } from '../runs/container-protocols/index.ts'
import { drivers } from '../runs/drivers.ts'
import { bundlePath, imageFor, modelPort, userOf } from '../runs/launch.ts'
import { keyProblem, modelOf } from '../runs/model-gateway/health.ts'
import { chooseSandbox, createSandboxes } from '../sandboxes/choose.ts'
import { inside } from '../sandboxes/mounts.ts'
import type { Mount, Sandbox } from '../sandboxes/types.ts'
import { bad, type DoctorContext, type Finding, good } from './types.ts'

/**
 * Whether programs in the configured images reach the model's gateway on the host. Each image is started with the
 * network of a run, but with a client of ours in place of its own program, which might do anything. An image may have
 * neither a shell nor libraries, so the client brings all it needs. It asks for a path that the gateway refuses by
 * itself: the provider hears nothing of it.
 */
interface Trial {
  sandbox: Sandbox
  image: string
  /** whether our own runner is in it, which opens the port itself; beside any other image a second container does */
  ownRunner: boolean
  uid: number | null
}

const trialMs = 60_000
const libraries = '/opt/hatchway/lib'

export async function imageModels(patient: DoctorContext): Promise<Finding[]> {
  const { config } = patient
  if (config.agents.enabled === 'no' || keyProblem(modelOf(config, patient.environment), patient.environment))
    return []
  const findings: Finding[] = []
  for (const trial of await trialsOf(patient)) findings.push(await findingOf(patient, trial))
  return findings
}

async function trialsOf({ config, checkup }: DoctorContext): Promise<Trial[]> {
  const sandboxes = createSandboxes(config)
  const named = [config.agents, ...Object.values(config.groups)].some(({ image }) => image !== undefined)
  if (!named) return []
  const usual = await chooseSandbox(config.agents.sandbox, config.agents.driver, sandboxes)
  const registered = checkup?.store?.groups ?? []
  const folders = new Set([...Object.keys(config.groups), ...registered.map(({ folder }) => folder)])
  // Before the first group is registered the image of all groups is tried as one of them would use it.
  if (folders.size === 0) folders.add('main')
  const trials = new Map<string, Trial>()
  for (const folder of folders) {
    const group = registered.find(one => one.folder === folder)
    const settings = settingsOf(config, folder)
    const wanted = settings.sandbox ?? 'auto'
    const sandbox = wanted === 'auto' ? usual.sandbox : sandboxes[wanted]
    const image = sandbox && imageFor(config, { folder }, sandbox)
    const ownRunner = group ? containerProtocols[group.dialect].ownRunner : false
    const asksModels = !ownRunner || drivers[settings.driver ?? config.agents.driver].model !== 'none'
    if (!sandbox || image === undefined || !asksModels) continue
    trials.set(`${sandbox.name} ${ownRunner} ${image}`, {
      sandbox,
      image,
      ownRunner,
      uid: group?.uid ?? null,
    })
  }
  return [...trials.values()]
}

async function findingOf(patient: DoctorContext, trial: Trial): Promise<Finding> {
  const what = `model from image ${trial.image} (${trial.sandbox.name})`
  const problem = await tryModel(patient, trial)
  if (problem !== undefined)
    return bad(what, `Agents in this image cannot ask their model. ${problem.replace(/([^.])$/, '$1.')}`)
  return good(
    what,
    trial.ownRunner
      ? `reachable by its socket, which the runner in the image puts on 127.0.0.1:${inside.modelPort}. The image’s own program was not started.`
      : `reachable on 127.0.0.1:${inside.modelPort}. The image’s own program was not started.`,
  )
}

/** What is wrong, or undefined. */
async function tryModel(
  { config, checkup, environment }: DoctorContext,
  trial: Trial,
): Promise<string | undefined> {
  const { sandbox, image, ownRunner } = trial
  if (!existsSync(bundlePath)) return 'The agent’s side is not built. Run: npm run build'
  const client = await clientFor(ownRunner)
  if (client === undefined) return 'It could not be tried, because `ldd` does not work on this machine.'
  const folder = mkdtempSync(join(tmpdir(), 'hatchway-doctor-'))
  const owner = ownerFor(config, process.getuid?.(), () => trial.uid ?? 1000)
  const { serveModel } = await import('../runs/model-gateway/socket.ts')
  const gateway = await serveModel({
    directory: join(folder, 'model'),
    owner,
    url: modelOf(config, environment).url,
    key: 'not-needed',
    onUsage: () => {},
  })
  try {
    const started = await sandbox.start({
      installation: checkup?.store?.installation ?? 'check',
      runId: basename(folder),
      group: { folder: 'doctor' },
      command: client.command,
      workingDirectory: '/',
      environment: {},
      mounts: [...client.mounts, { from: gateway.directory, to: inside.model, writable: false }],
      image,
      ...(ownRunner ? {} : { sidecar: modelPort(gateway.directory) }),
      user: userOf(owner),
      limits: config.agents,
    })
    const said = Promise.all([text(started.stdout), text(started.stderr)])
    if (!(await within(trialMs, started.exited))) {
      await started.kill()
      return `The trial did not end within ${trialMs / 1000} s. Look at the load of this machine, and at ${sandbox.name}.`
    }
    const { code, problem } = await started.exited
    if (problem !== undefined) return problem
    const [answer, errors] = await said
    if (code === 0 && answer.trim() === '404') return undefined
    return `The host’s gateway did not answer: ${lastWords(errors) || answer.trim() || `the trial ended with ${code}`}. Its socket is in ${tmpdir()} for the trial and in the data directory for runs; ${sandbox.name} must be able to mount both.`
  } catch (error) {
    return reasonOf(error)
  } finally {
    await gateway.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Node by its loader, with its libraries beside it; undefined: they are not known. */
async function clientFor(
  ownRunner: boolean,
): Promise<{ command: readonly string[]; mounts: readonly Mount[] } | undefined> {
  const listed = await ask('ldd', [process.execPath], { timeoutMs: 10_000 })
  const paths = [...listed.stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path = '']) => path)
  const loader = paths.find(path => /^ld-/.test(basename(path)))
  if (listed.code !== 0 || loader === undefined) return undefined
  const to = ownRunner ? { socketPath: inside.modelSocket } : { host: '127.0.0.1', port: inside.modelPort }
  const script = `require('node:http').get(${JSON.stringify({ ...to, path: '/doctor' })}, answer => {
    console.log(answer.statusCode)
    answer.resume()
  }).on('error', error => {
    console.error(error.message)
    process.exitCode = 1
  })`
  return {
    command: [
      join(libraries, basename(loader)),
      ...['--library-path', libraries, inside.node, '--eval', script],
    ],
    mounts: [
      { from: process.execPath, to: inside.node, writable: false },
      ...paths.map(from => ({ from, to: join(libraries, basename(from)), writable: false })),
    ],
  }
}
