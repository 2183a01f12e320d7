import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, test } from 'vitest'
import { type InstallationOptions, openInstallation } from '../../../../../testing/src/daemon/installation.ts'
import { launch } from '../../../../../testing/src/daemon/process.ts'
import { until } from '../../../../../testing/src/until.ts'
import { findProgram } from '../../../base/programs.ts'

/**
 * Agents in worktrees of real repositories: real git, a real daemon, real sandboxes. What an agent does in its worktree
 * it does from inside; what the host does is seen in the operator's repository.
 */
const missing = ['bwrap', 'git'].find(program => !findProgram(program))
export const isProven = process.env.CI === 'true'
export const attempt = missing === undefined || isProven ? test : test.skip
export const attemptAsRoot = process.getuid?.() === 0 ? attempt : test.skip

/** It does what is written in its group's folder. */
const agent = 'cat > /tmp/prompt; . ./do.sh'

const environment = {
  PATH: process.env.PATH ?? '/usr/bin:/bin',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'Olga',
  GIT_AUTHOR_EMAIL: 'olga@example.org',
  GIT_COMMITTER_NAME: 'Olga',
  GIT_COMMITTER_EMAIL: 'olga@example.org',
}
export const git = (at: string, ...args: string[]) =>
  execFileSync('git', ['-c', 'safe.directory=*', '-C', at, ...args], {
    env: environment,
    encoding: 'utf8',
  }).trim()

/** The operator's repository with a file of ten lines, and a bare one that is its remote if need be. */
export const makeRepository = (path: string, remote?: string) => {
  mkdirSync(path, { recursive: true })
  git(path, 'init', '--quiet', '--initial-branch=main', '.')
  commit(path, 'a.txt', `${lines().join('\n')}\n`, 'the beginning')
  if (remote === undefined) return
  mkdirSync(remote, { recursive: true })
  git(remote, 'init', '--quiet', '--bare', '--initial-branch=main', '.')
  git(path, 'remote', 'add', 'origin', remote)
  git(path, 'push', '--quiet', 'origin', 'main')
}
export const lines = () => Array.from({ length: 10 }, (_, index) => `line ${index + 1}`)
export const commit = (path: string, file: string, text: string, message: string) => {
  writeFileSync(join(path, file), text)
  git(path, 'add', file)
  git(path, 'commit', '--quiet', '--message', message)
}
export const subjects = (path: string, ref = 'main') => git(path, 'log', '--format=%s', ref).split('\n')

/** As an agent's own program would, and leaving nothing that is ours where the agent writes. */
export const drop = (directory: string, body: object) => {
  const name = randomUUID()
  writeFileSync(join(directory, `.${name}`), JSON.stringify(body))
  renameSync(join(directory, `.${name}`), join(directory, `${name}.json`))
}

export interface Settings extends Pick<InstallationOptions, 'atEnd' | 'uid'> {
  repos: (home: string) => Record<string, Record<string, unknown>>
  groups: Record<string, Record<string, unknown>>
  sandbox?: string
  environment?: Record<string, string>
}

export const open = async ({
  repos,
  groups,
  sandbox = 'bubblewrap',
  environment = {},
  ...rest
}: Settings) => {
  let place = ''
  const installation = await openInstallation({
    ...rest,
    sandbox,
    environment: home => {
      place = home
      const file = join(home, 'hatchway.config.mjs')
      const agents = { driver: 'command', command: ['/bin/sh', '-c', agent], idleMs: 100, closeMs: 1000 }
      const config = { agents, repos: repos(home), groups }
      writeFileSync(file, `export default ${JSON.stringify(config)}`)
      return { HATCHWAY_CONFIG: file, ...environment }
    },
  })
  for (const folder of Object.keys(groups)) {
    if (folder !== 'main' && folder !== 'pynchy')
      await installation.addGroup({ folder, jid: `local:${folder}`, name: folder })
  }
  const ipc = (folder: string, ...rest: string[]) => join(installation.data, 'ipc', folder, ...rest)
  const ask = (folder: string, id: string = randomUUID()) => {
    drop(ipc(folder, 'tasks'), { version: 1, id, type: 'sync_worktree', payload: {} })
    return id
  }
  const answer = async (folder: string, id: string) => {
    const path = ipc(folder, 'responses', `${id}.json`)
    await until(async () => existsSync(path))
    return JSON.parse(readFileSync(path, 'utf8'))
  }
  /**
   * Asked from outside, right after a run: until the host has put that run away it takes the request for the run's, and
   * answers nobody. Whoever is unsure asks again with the same id.
   */
  const sync = async (folder: string) => {
    const id = ask(folder)
    const asking = setInterval(() => ask(folder, id), 5000)
    return answer(folder, id).finally(() => clearInterval(asking))
  }
  return {
    ...installation,
    home: place,
    /** a daemon that ends itself, as SIGKILL does, at such a step */
    launchFaulty: (fault: string) =>
      launch(installation.data, {
        env: {
          ...{ HATCHWAY_AGENTS_ENABLED: 'yes', HATCHWAY_AGENTS_SANDBOX: sandbox, HATCHWAY_TIMEZONE: 'UTC' },
          ...{ HATCHWAY_CONFIG: join(place, 'hatchway.config.mjs'), HATCHWAY_FAULT: fault },
        },
      }),
    /** what the group's agent does in its worktree, and prints */
    async inside(folder: string, script: string) {
      const path = join(installation.data, 'groups', folder, 'do.sh')
      writeFileSync(path, `cd "$HATCHWAY_PROJECT_DIR" || exit 1\n${script}\n`)
      const said = await installation.hatchway('chat', '--group', folder, '--once', '@Hatch do it', '--wait')
      await until(async () => (await installation.runs(folder)).every(({ status }) => status !== 'running'))
      return said
    },
    ask,
    answer,
    sync,
    audit: async () => JSON.parse(await installation.hatchway('audit', 'list', '--json')),
  }
}
export type Installation = Awaited<ReturnType<typeof open>>

const closing: (() => Promise<void>)[] = []
const atEnd = (close: () => Promise<void>) => void closing.push(close)
export const shared = (settings: Settings, keep: (installation: Installation) => void) =>
  beforeAll(async () => {
    if (missing !== undefined && !isProven) return
    keep(await open({ ...settings, atEnd }))
    return async () => {
      for (const close of closing.splice(0)) await close()
    }
  })

/** How an agent asks from inside. */
export const askInside = `sync() {
  id=r-$(cat /proc/sys/kernel/random/uuid)
  printf '{"version":1,"id":"%s","type":"sync_worktree","payload":{}}' "$id" > "$HATCHWAY_IPC/tasks/.$id"
  mv "$HATCHWAY_IPC/tasks/.$id" "$HATCHWAY_IPC/tasks/$id.json"
  until [ -e "$HATCHWAY_IPC/responses/$id.json" ]; do sleep 0.05; done
  cat "$HATCHWAY_IPC/responses/$id.json"
}
`
