import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { ask, findProgram } from '../../host/src/base/programs.ts'
import { openInstallation } from '../src/daemon/installation.ts'
import { hatchwayProgram } from '../src/paths.ts'
import { startDockerEngine } from '../src/sandboxes/engines.ts'

/**
 * A supervised host that is ended in its first second, while it looks for its sandbox, ends what the one before has left,
 * or starts the run that was interrupted. The one that is stopped in peace afterwards leaves nothing of any of them.
 */
const places = [
  { sandbox: 'bubblewrap', needed: ['bwrap'] },
  { sandbox: 'docker', needed: ['dockerd', 'docker'] },
  { sandbox: 'podman', needed: ['podman', 'runc'] },
].map(({ sandbox, needed }) => {
  const missing = [
    ...needed.filter(name => findProgram(name) === undefined),
    ...(process.getuid?.() === 0 ? [] : ['root']),
  ]
  return {
    sandbox,
    missing,
    title: missing.length > 0 ? `${sandbox} (needs ${missing.join(', ')})` : sandbox,
  }
})

/** Those that name this folder: in their command line, or in the environment that they were started with. */
const processesOf = (home: string): string[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .filter(pid => [`/proc/${pid}/cmdline`, `/proc/${pid}/environ`].some(path => read(path).includes(home)))
    .map(pid => `${pid} ${read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ')}`)

const read = (path: string): string => {
  try {
    return readFileSync(path, 'latin1')
  } catch (error) {
    if (error instanceof Error && 'code' in error) return ''
    throw error
  }
}

const isTried = ({ missing }: { missing: string[] }) => missing.length === 0 || process.env.CI === 'true'
test.each(places.filter(isTried))(
  '$title: nothing is left of hosts that ended in their first second',
  async ({ sandbox }) => {
    const docker = sandbox === 'docker' ? await startDockerEngine() : undefined
    onTestFinished(async () => docker?.stop())
    let temporary = ''
    let engines: Record<string, string> = {}
    const installation = await openInstallation({
      sandbox,
      under: data => [process.execPath, hatchwayProgram, 'supervise', '--data', data, '--'],
      environment: home => {
        temporary = join(home, 'tmp')
        mkdirSync(temporary)
        const file = (name: string, text: string) => {
          writeFileSync(join(home, name), text)
          return join(home, name)
        }
        const agents = { driver: 'command', command: ['/bin/sh', '-c', 'cat > /dev/null; sleep 1000'] }
        const storage = `[storage]\ndriver="overlay"\ngraphroot="${home}/root"\nrunroot="${home}/run"\n`
        engines = {
          DOCKER_HOST: docker?.options.environment?.DOCKER_HOST ?? '',
          CONTAINERS_CONF: file('containers.conf', '[engine]\nruntime="runc"\n'),
          CONTAINERS_STORAGE_CONF: file('storage.conf', storage),
        }
        const config = file('hatchway.config.mjs', `export default ${JSON.stringify({ agents })}`)
        return { HATCHWAY_CONFIG: config, TMPDIR: temporary, ...engines }
      },
    })
    const containers = async () => {
      if (sandbox === 'bubblewrap') return ''
      const args = [...(sandbox === 'podman' ? ['--cgroup-manager=cgroupfs'] : []), 'ps', '--all', '--quiet']
      const answer = await ask(sandbox, args, {
        timeoutMs: 60_000,
        environment: { ...process.env, ...engines },
      })
      return answer.code === 0 ? answer.stdout : `it does not answer: ${answer.stderr}`
    }
    const isRunning = async () => (await installation.runs()).some(({ status }) => status === 'running')

    for (const [ms, ending] of [
      [100, 'kill'],
      [500, 'kill'],
      [900, 'stop'],
    ] as const) {
      await installation.hatchway('chat', '--once', `wait ${ms}`)
      await expect.poll(isRunning, { timeout: 60_000 }).toBe(true)
      await installation.daemon()?.kill()
      const starting = installation.up().catch(() => {})
      await sleep(ms)
      await installation.daemon()?.[ending]()
      await starting
      await installation.up()
    }
    await installation.daemon()?.stop()
    await expect.poll(() => processesOf(installation.home), { timeout: 30_000 }).toEqual([])
    await expect.poll(containers, { timeout: 30_000 }).toBe('')
    expect(readdirSync(temporary)).toEqual([])
  },
)
