import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { tasksAnswer } from '../../../host/src/api/answers.ts'
import { newEntryAnswer } from '../../../host/src/api/chat-answers.ts'
import { announcedSocket } from '../../../host/src/api/socket.ts'
import { DaemonGone, overSocket } from '../../../host/src/client/over-socket.ts'
import type { Method } from '../../../host/src/client/transport.ts'
import { deploysAnswer } from '../../../host/src/plugins/deploy/answers.ts'
import { openInstallation } from '../daemon/installation.ts'
import { hatchwayProgram } from '../paths.ts'
import { passwordOf, type Radicale } from '../radicale.ts'
import type { Column } from './dialects/index.ts'
import { imageOf } from './images.ts'
import { openObserver } from './observer.ts'

/**
 * Where one column is tried: a daemon as people start it, under its supervisor, with a main group, another one, and a
 * third that only things happen to. Everything that a dialect knows is configured, for all of them.
 */
export interface TestbedOptions {
  column: Column
  docker: NodeJS.ProcessEnv
  radicale: Radicale | undefined
  atEnd(close: () => Promise<void>): void
}

const zone = 'Asia/Tokyo'
/** a turn of NovaBot's that takes longer is interrupted, which is one of the things to be seen */
const turnMs = 30_000

export type Testbed = Awaited<ReturnType<typeof openTestbed>>

export async function openTestbed({ column, docker, radicale, atEnd }: TestbedOptions) {
  let home = ''
  const at = (name: string) => join(home, name)
  const installation = await openInstallation({
    sandbox: 'docker',
    main: ['--dialect', column.dialect],
    under: data => [process.execPath, hatchwayProgram, 'supervise', '--data', data, '--'],
    atEnd,
    environment(place) {
      home = place
      for (const name of ['jobs', 'notes', 'checkout', 'repository']) mkdirSync(at(name))
      chmodSync(at('jobs'), 0o777)
      makeRepository(at('checkout'))
      makeRepository(at('repository'))
      const image = { image: imageOf(column), sandbox: 'docker' }
      const config = {
        agents: { atOnce: 6, idleMs: 600_000, ...(column.dialect === 'novabot' ? { runMs: turnMs } : {}) },
        groups: {
          main: image,
          other: { ...image, repo: 'project', containsSecrets: true },
          third: image,
        },
        services: { plugins: [join(import.meta.dirname, 'skill.service.ts')] },
        hostJobs: { enabled: 'yes', directories: [at('jobs')], users: ['nobody'] },
        deploy: { enabled: 'yes', directory: at('checkout') },
        repos: { project: { path: at('repository') } },
        ...(radicale
          ? {
              calendars: {
                team: { url: radicale.url, username: 'ann', passwordVariable: 'CALENDAR_PASSWORD' },
              },
            }
          : {}),
      }
      writeFileSync(at('hatchway.config.mjs'), `export default ${JSON.stringify(config)}\n`)
      return {
        HATCHWAY_CONFIG: at('hatchway.config.mjs'),
        HATCHWAY_TIMEZONE: zone,
        DOCKER_HOST: docker.DOCKER_HOST ?? '',
        CONFORMANCE_NOTES: at('notes'),
        CALENDAR_PASSWORD: passwordOf('ann'),
      }
    },
  })
  const request = async <T>(
    method: Method,
    path: string,
    body: unknown,
    schema: z.ZodType<T>,
  ): Promise<T> => {
    for (;;) {
      try {
        const { status, text } = await overSocket(announcedSocket(installation.data)).request(
          method,
          path,
          body,
        )
        if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`)
        return schema.parse(JSON.parse(text))
      } catch (error) {
        // A deploy restarts it.
        if (!(error instanceof DaemonGone)) throw error
        await sleep(200)
      }
    }
  }
  const group = (folder: string) => ({
    ...{ folder, jid: `local:${folder}`, name: folder, dialect: column.dialect, trigger: '@Hatch' },
  })
  for (const folder of ['other', 'third']) await request('POST', '/groups', group(folder), z.unknown())
  const world = openObserver(installation.data)

  const task = z.looseObject({ task_id: z.string().optional(), id: z.string().optional() })
  return {
    ...world,
    home,
    column,
    request,
    /** the database is the daemon's alone while it runs */
    stop: async () => installation.daemon()?.stop(),
    isIdle: async (folder: string) =>
      (await installation.runs(folder)).every(({ status }) => status !== 'running'),
    taskId: async (prompt: string) =>
      (await request('GET', '/tasks', undefined, tasksAnswer)).find(task => task.prompt === prompt)?.id ??
      'none',
    isAnswered: async (folder: string, text: string) => (await installation.texts(folder)).includes(text),
    isDeployed: async () =>
      (await request('GET', '/deploys', undefined, deploysAnswer)).some(({ status }) => status === 'done'),
    /** in the group's chat, to its agent */
    say: (folder: string, text: string) =>
      request(
        'POST',
        `/api/chats/${encodeURIComponent(`local:${folder}`)}/messages`,
        { text: folder === 'main' ? text : `@Hatch ${text}`, id: randomUUID() },
        newEntryAnswer,
      ),
    /** as an operator schedules something that is due at once */
    schedule: async (folder: string, prompt: string) => {
      const schedule = {
        schedule_type: 'once',
        schedule_value: '2099-01-01T00:00:00Z',
        context_mode: 'group',
      }
      const made = await request('POST', '/tasks', { group: folder, prompt, ...schedule }, task)
      await installation.runTask(made.task_id ?? made.id ?? '')
    },
    begin: (folder: string) => request('POST', `/groups/${folder}/reset`, {}, z.unknown()),
    /** the revision that is to be deployed */
    commit: () => commit(at('checkout'), 'two'),
    jobs: at('jobs'),
    notes: at('notes'),
    repository: at('repository'),
  }
}

const environment = {
  PATH: process.env.PATH ?? '/usr/bin:/bin',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  ...{ GIT_AUTHOR_NAME: 'Olga', GIT_AUTHOR_EMAIL: 'olga@example.org' },
  ...{ GIT_COMMITTER_NAME: 'Olga', GIT_COMMITTER_EMAIL: 'olga@example.org' },
}
export const git = (directory: string, ...args: string[]): string =>
  execFileSync('git', ['-C', directory, ...args], { env: environment, encoding: 'utf8' }).trim()

function commit(directory: string, text: string): string {
  writeFileSync(join(directory, 'name.txt'), `${text}\n`)
  git(directory, 'add', 'name.txt')
  git(directory, 'commit', '--quiet', '--message', text)
  return git(directory, 'rev-parse', 'HEAD')
}

function makeRepository(directory: string): void {
  git(directory, 'init', '--quiet', '--initial-branch=main', '.')
  commit(directory, 'one')
}
