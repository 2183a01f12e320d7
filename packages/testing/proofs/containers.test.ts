import { execFileSync } from 'node:child_process'
import { chownSync, cpSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { findProgram } from '../../host/src/base/programs.ts'
import { openInstallation } from '../src/daemon/installation.ts'
import { temporaryFolder } from '../src/folders.ts'
import { macosPrograms } from '../src/macos.ts'
import { projectRoot } from '../src/paths.ts'
import { importPrograms } from '../src/sandboxes/base-image.ts'
import { type EngineRig, startDockerEngine } from '../src/sandboxes/engines.ts'
import { until } from '../src/until.ts'

/**
 * The recipes of the package, built without a network: the host in a container, with agents in bubblewrap or in containers
 * beside it; and a host on macOS, as far as it can be tried on Linux: what it asks the system about is answered in macOS's
 * way, and agents run in the image, since nothing of its own could run in a container.
 */
const isMissing = ['dockerd', 'docker', 'bwrap'].some(name => findProgram(name) === undefined)
const place = temporaryFolder('containers')
let engine: EngineRig | undefined
const docker = (...args: string[]) =>
  execFileSync('docker', args, {
    env: { ...engine?.options.environment, DOCKER_BUILDKIT: '0' },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
const socket = () => (engine?.options.environment?.DOCKER_HOST ?? '').replace('unix://', '')

describe.skipIf(isMissing && process.env.CI !== 'true')(
  'in containers (needs dockerd, docker, bwrap)',
  () => {
    beforeAll(async () => {
      engine = await startDockerEngine()
      const tools = ['bwrap', 'prlimit', 'setpriv', 'docker', 'git', 'mkdir', 'chown', 'ln', 'env']
      await importPrograms('base:latest', tools, engine?.options.environment)
      const installed = join(place, 'image', 'node_modules', 'hatchway')
      // As the package is: the proof of the installation packs it, which takes longer.
      for (const [from, to] of [
        [join('packages', 'cli', 'bin'), 'bin'],
        [join('packages', 'cli', 'dist'), 'dist'],
        [join('packages', 'cli', 'package.json'), 'package.json'],
        [join('packages', 'agent', 'dist'), join('dist', 'agent')],
        [join('packages', 'web', 'dist'), join('dist', 'console')],
        ['units', 'units'],
      ] as const)
        cpSync(join(projectRoot, from), join(installed, to), { recursive: true })
      writeFileSync(join(place, 'image', 'package.json'), '{ "private": true, "type": "module" }')
      const build = ['build', '--network', 'none', '--build-arg', 'BASE=base:latest', '--build-arg', 'TOOLS=']
      const recipe = join(installed, 'units', 'Dockerfile')
      docker(...build, '--tag', 'hatchway', '--file', recipe, join(place, 'image'))
      docker(...build, '--tag', 'hatchway-agent', join(installed, 'dist', 'agent'))
    }, 300_000)
    afterAll(async () => {
      await engine?.stop()
      rmSync(place, { recursive: true, force: true })
    }, 60_000)

    /** A host in a container, talked to from within it; what `doctor` says there. */
    async function talk(name: string, ...options: string[]): Promise<string> {
      const usual = ['run', '--detach', '--init', '--network', 'none', '--cap-drop', 'ALL', '--name', name]
      docker(...usual, ...options, 'hatchway')
      await until('the host in the container is ready', () => /\bready\b/.test(logs(name)))
      const inside = ['exec', name, 'node', '/opt/hatchway/node_modules/hatchway/bin/hatchway.mjs']
      expect(docker(...inside, 'chat', '--once', 'hello', '--wait')).toContain('I’m Hatch')
      const said = docker(...inside, 'doctor')
      docker('stop', '--time', '60', name)
      expect(docker('inspect', '--format', '{{.State.ExitCode}}', name)).toBe('0\n')
      return said
    }
    const logs = (name: string) =>
      execFileSync('sh', ['-c', `docker logs ${name} 2>&1`], {
        env: engine?.options.environment,
        encoding: 'utf8',
      })

    test('agents run in bubblewrap where the engine allows it', async () => {
      const allowed = ['seccomp', 'apparmor', 'systempaths'].flatMap(what => [
        '--security-opt',
        `${what}=unconfined`,
      ])
      expect(await talk('inside', ...allowed)).toMatch(/^ok +sandbox in use: bubblewrap/m)
    })

    test('where it does not, doctor says what to do', () => {
      const said = docker('run', '--rm', '--network', 'none', '--cap-drop', 'ALL', 'hatchway', 'doctor')
      expect(said).toMatch(/^note +sandbox bubblewrap: .* This is a container, .*docker-compose\.yml/m)
      expect(said).toMatch(/^note +sandbox docker: Docker does not answer: /m)
    })

    test('agents run in containers beside the host, which share its data under the same path', async () => {
      const data = join(place, 'shared')
      mkdirSync(join(data, 'tmp'), { recursive: true })
      for (const path of [data, join(data, 'tmp')]) chownSync(path, 1000, 1000)
      const said = await talk(
        'beside',
        ...['--volume', `${socket()}:/var/run/docker.sock`, '--group-add', String(statSync(socket()).gid)],
        ...['--volume', `${data}:${data}`, '--env', `HATCHWAY_DATA=${data}`, '--env', `TMPDIR=${data}/tmp`],
        ...['--env', 'HATCHWAY_AGENTS_IMAGE=hatchway-agent'],
      )
      expect(said).toMatch(/^ok +sandbox in use: docker, .*Image: hatchway-agent/m)
      expect(docker('ps', '--all', '--quiet', '--filter', 'label=hatchway.run')).toBe('')
    })

    test('an engine that does not have the host’s files is not used, and doctor says why', () => {
      const with_ = [
        '--volume',
        `${socket()}:/var/run/docker.sock`,
        '--group-add',
        String(statSync(socket()).gid),
      ]
      const run = ['run', '--rm', '--network', 'none', '--cap-drop', 'ALL', ...with_]
      expect(docker(...run, 'hatchway', 'doctor')).toMatch(
        /^note +sandbox docker: .*needs an image\. Build it/m,
      )
      expect(docker(...run, '--env', 'HATCHWAY_AGENTS_IMAGE=hatchway-agent', 'hatchway', 'doctor')).toMatch(
        /^note +sandbox docker: .*it does not have \/tmp: .*under the same path/m,
      )
      expect(docker('ps', '--all', '--quiet', '--filter', 'label=hatchway.run')).toBe('')
    })

    test('a host on macOS runs agents in the image', async () => {
      const macos = "Object.defineProperty(process, 'platform', { value: 'darwin' })"
      const programs = macosPrograms(place)
      const environment = {
        NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(macos)}`,
        PATH: `${programs}:${process.env.PATH}`,
        DOCKER_HOST: `unix://${socket()}`,
      }
      const installation = await openInstallation({
        sandbox: 'auto',
        environment: () => ({ ...environment, HATCHWAY_AGENTS_IMAGE: 'hatchway-agent' }),
      })
      onTestFinished(() => rmSync(programs, { recursive: true }))
      expect(await installation.say('hello')).toContain('I’m Hatch')
      expect((await installation.runs())[0]).toMatchObject({ sandbox: 'docker' })
      const said = await installation.hatchway('doctor')
      expect(said).toMatch(/^note +sandbox bubblewrap: bubblewrap exists only for Linux/m)
      expect(said).toMatch(/^ok +events: This system names no limits/m)
      expect(said).toMatch(/^ok +sandbox in use: docker/m)
      await installation.daemon()?.stop()
      const withoutImage = await openInstallation({ sandbox: 'process', environment: () => environment })
      expect(await withoutImage.hatchway('doctor')).toMatch(
        /^note +sandbox docker: Docker needs an image on this system\. Build it with: docker build/m,
      )
    })
  },
)
