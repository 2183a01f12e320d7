import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect } from 'vitest'
import { startDockerEngine } from '../../../../testing/src/sandboxes/engines.ts'
import { until } from '../../../../testing/src/until.ts'
import { attempt, isProven, makeRepository, open, type Settings, subjects } from './testing/testbed.ts'

const docker = await startDockerEngine()
afterAll(() => docker?.stop())

const isRoot = process.getuid?.() === 0
const places: {
  how: string
  possible: boolean
  settings: Pick<Settings, 'sandbox' | 'uid' | 'environment'>
}[] = [
  { how: 'without a sandbox', possible: true, settings: { sandbox: 'process' } },
  {
    how: docker ? 'in Docker' : 'in Docker (needs an engine)',
    possible: docker !== undefined || isProven,
    settings: {
      sandbox: 'docker',
      environment: { DOCKER_HOST: docker?.options.environment?.DOCKER_HOST ?? '' },
    },
  },
  { how: 'under a daemon that is not root', possible: isRoot, settings: { uid: 4712 } },
]

describe.concurrent.each(places)('$how', ({ possible, settings }) => {
  ;(possible ? attempt : attempt.skip)(
    'commits become the branch, and a check is run',
    async ({ onTestFinished }) => {
      const installation = await open({
        ...settings,
        atEnd: onTestFinished,
        repos: home => {
          const path = join(home, 'ops', 'site')
          makeRepository(path)
          const { uid } = settings
          if (uid !== undefined) execFileSync('chown', ['-R', `${uid}:${uid}`, path])
          return { site: { path, test: 'test -e new.txt && git log -1 --format=%s' } }
        },
        groups: { main: { repo: 'site' } },
      })
      await installation.inside('main', 'echo new > new.txt; git add . && git commit -qm "a new file"')
      expect(await installation.sync('main')).toMatchObject({
        ok: true,
        result: { merged: true, commits: 1 },
      })
      expect(subjects(join(installation.home, 'ops', 'site'))).toEqual(['a new file', 'the beginning'])
      expect(
        await installation.inside('main', 'git fetch; git status -sb; git log --oneline origin/main | wc -l'),
      ).toContain('2')
    },
  )
})

describe('the end of a scheduled run', () => {
  const finish = (id: string) => [
    `echo '{"version":1,"id":"${id}","type":"finished_work","payload":{}}' > /workspace/ipc/tasks/${id}.json`,
    `while [ ! -e /workspace/ipc/responses/${id}.json ]; do sleep 0.05; done`,
    `cat /workspace/ipc/responses/${id}.json >> /workspace/group/answers`,
  ]
  const task = {
    prompt: 'work',
    schedule_type: 'cron',
    schedule_value: '0 0 1 1 *',
    context_mode: 'isolated',
  }

  attempt('merges its commits, or goes on until they can be', async () => {
    const installation = await open({
      repos: home => {
        const path = join(home, 'ops', 'site')
        makeRepository(path)
        return { site: { path, mergeAtEnd: true } }
      },
      groups: { main: { repo: 'site' } },
    })
    const script = [
      'cd "$HATCHWAY_PROJECT_DIR" || exit 1',
      'echo new > new.txt',
      ...finish('too-early'),
      'git add . && git commit -qm "a new file"',
      ...finish('in-time'),
      'sleep 1000',
    ]
    writeFileSync(join(installation.data, 'groups', 'main', 'do.sh'), `${script.join('\n')}\n`)
    const posted = await installation.hatchway(
      ...['post', '--group', 'main', '--type', 'schedule_task', '--payload', JSON.stringify(task)],
      ...['--wait', '--json'],
    )
    await installation.runTask(JSON.parse(posted).result.task_id)
    await until(async () => (await installation.runs()).some(({ status }) => status !== 'running'))
    expect(await installation.runs()).toMatchObject([{ kind: 'task', status: 'done' }])
    const answers = readFileSync(join(installation.data, 'groups', 'main', 'answers'), 'utf8')
    expect(answers).toContain('"code":"dirty_tree"')
    expect(answers).toContain('"status":"finished"')
    expect(subjects(join(installation.home, 'ops', 'site'))).toEqual(['a new file', 'the beginning'])
  })
})
