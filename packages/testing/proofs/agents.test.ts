import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { layoutOf } from '../../host/src/base/layout.ts'
import { markedProcesses } from '../../host/src/base/processes.ts'
import { findProgram } from '../../host/src/base/programs.ts'
import { inspectStore } from '../../host/src/store/inspect.ts'
import { openInstallation } from '../src/daemon/installation.ts'
import { startDockerEngine } from '../src/sandboxes/engines.ts'
import { until } from '../src/until.ts'

/**
 * The whole way, with nothing left out: a daemon as people start it, the command line as people use it, a sandbox, the
 * bundled agent in it, its MCP server, the hatch, the scheduler and back. No network, no model, no key.
 */
const isRoot = process.getuid?.() === 0
const docker = await startDockerEngine()
afterAll(() => docker?.stop())

interface Case {
  name: string
  /** what is missing here, if something is */
  missing: string | undefined
  environment?: (home: string) => Record<string, string>
  uid?: number
}

const podmanFiles = (home: string) => {
  writeFileSync(join(home, 'containers.conf'), '[engine]\nruntime="runc"\n')
  writeFileSync(
    join(home, 'storage.conf'),
    `[storage]\ndriver="overlay"\ngraphroot="${home}/root"\nrunroot="${home}/run"\n`,
  )
  return {
    CONTAINERS_CONF: join(home, 'containers.conf'),
    CONTAINERS_STORAGE_CONF: join(home, 'storage.conf'),
  }
}
const without = (program: string) => (findProgram(program) ? undefined : program)

const cases: Case[] = [
  { name: 'bubblewrap', missing: without('bwrap') },
  {
    name: 'bubblewrap',
    uid: 1000,
    missing: isRoot ? without('bwrap') : 'root, to become another user',
  },
  {
    name: 'podman',
    missing: isRoot ? (without('podman') ?? without('runc')) : 'root',
    environment: podmanFiles,
  },
  {
    name: 'docker',
    missing: docker ? undefined : 'a Docker engine',
    environment: () => ({ DOCKER_HOST: docker?.options.environment?.DOCKER_HOST ?? '' }),
  },
  { name: 'process', missing: undefined },
]

for (const one of cases) {
  const title = `in ${one.name}${one.uid === undefined ? '' : ' as an ordinary user'}`
  // On a contributor's machine a part may be missing, and the name says so; where everything has to be proven it fails.
  const attempt = one.missing === undefined || process.env.CI === 'true' ? test : test.skip
  describe.concurrent(`${title}${one.missing === undefined ? '' : ` (needs ${one.missing})`}`, () => {
    attempt(
      'a person is answered, reminded, answered again, and again after a crash',
      async ({ onTestFinished }) => {
        const installation = await openInstallation({ ...one, sandbox: one.name, atEnd: onTestFinished })
        expect(await installation.say('remind me in eight seconds to stretch')).toContain('stretch')
        await until(async () => (await installation.texts()).some(text => text.includes('Reminder: stretch')))
        const first = await installation.runs()
        expect(first.map(({ kind, sandbox }) => `${kind} ${sandbox}`)).toEqual([
          `chat ${one.name}`,
          `task ${one.name}`,
        ])

        // A follow-up goes into the session that runs.
        await installation.say('help')
        await installation.say('every day at 9 remind me to water the plants')
        const second = await installation.runs()
        expect(second).toHaveLength(3)
        expect(second[2]).toMatchObject({ kind: 'chat', status: 'running' })

        // Killed while a session waits for the next message: the next start ends what is left of it, and answers.
        await installation.daemon()?.kill()
        await installation.up()
        expect(await installation.say('what are my reminders')).toContain('water the plants')
        const third = await installation.runs()
        expect(third[2]).toMatchObject({ status: 'done' })
        expect(third).toHaveLength(4)

        await installation.daemon()?.stop()
        const { installation: id } = await inspectStore(layoutOf(installation.data).database)
        expect(markedProcesses(one.name, id ?? '')).toEqual([])
        const kept: { text: string }[] = JSON.parse(await installation.hatchway('messages', 'list', '--json'))
        const texts = kept.map(({ text }) => text)
        expect(texts.filter(text => text.includes('Reminder: stretch'))).toHaveLength(1)
        expect(texts).toHaveLength(5)
      },
    )
  })
}
