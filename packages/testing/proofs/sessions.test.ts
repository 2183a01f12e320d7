import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { post as postFile } from '@hatchway/spool'
import { describe, expect, type TestContext, test } from 'vitest'
import { findProgram } from '../../host/src/base/programs.ts'
import { openInstallation } from '../src/daemon/installation.ts'
import { launch } from '../src/daemon/process.ts'
import { until } from '../src/until.ts'

/** Agents that begin anew, end their scheduled runs and are made by others, in real sandboxes with real files. */
const missing = findProgram('bwrap') ? undefined : 'bwrap'
const attempt = missing === undefined || process.env.CI === 'true' ? test : test.skip
const needs = missing ? ` (needs ${missing})` : ''

const envelope = (id: string, type: string, payload: object = {}) =>
  JSON.stringify({ version: 1, id, type, payload })

/** Drops a command and waits for its answer, in the shell of the sandbox. */
const ask = (id: string, type: string, payload: object = {}) =>
  [
    `echo '${envelope(id, type, payload)}' > /workspace/ipc/tasks/${id}.json`,
    `while [ ! -e /workspace/ipc/responses/${id}.json ]; do sleep 0.05; done`,
    `cat /workspace/ipc/responses/${id}.json >> /workspace/group/answers`,
    'echo >> /workspace/group/answers',
  ].join('\n')

/** `closeMs`: how long an agent that is asked to finish has for it, where it does. */
const open = (
  { onTestFinished }: TestContext,
  script: string,
  more: (home: string) => object = () => ({}),
  closeMs = 500,
) =>
  openInstallation({
    sandbox: 'bubblewrap',
    atEnd: onTestFinished,
    environment: home => {
      const file = join(home, 'hatchway.config.mjs')
      const config = {
        agents: { driver: 'command', command: ['/bin/sh', '-c', script], idleMs: 60_000, closeMs },
        ...more(home),
      }
      writeFileSync(file, `export default ${JSON.stringify(config)}`)
      return { HATCHWAY_CONFIG: file }
    },
  })
type Installation = Awaited<ReturnType<typeof openInstallation>>

const post = async (
  installation: Installation,
  group: string,
  type: string,
  payload: object = {},
  id?: string,
) => {
  try {
    const printed = await installation.hatchway(
      ...['post', '--group', group, '--type', type, '--payload', JSON.stringify(payload), '--wait', '--json'],
      ...(id === undefined ? [] : ['--id', id]),
    )
    return JSON.parse(printed)
  } catch (error) {
    if (error instanceof Error && 'stdout' in error && String(error.stdout).trim() !== '') {
      return JSON.parse(String(error.stdout))
    }
    throw error
  }
}
const dropAs = (installation: Installation, group: string, text: string) =>
  postFile(join(installation.data, 'ipc', group, 'tasks'), text, {
    staging: join(installation.data, 'spool', 'staging'),
  })
const nameOf = ({ folder, jid, name }: Record<string, unknown>) => ({ folder, jid, name })
const answers = (installation: Installation, group = 'main') => {
  const path = join(installation.data, 'groups', group, 'answers')
  return existsSync(path) ? readFileSync(path, 'utf8') : ''
}

describe.concurrent('begin anew', () => {
  attempt(`the next session begins with the message, and the first is over${needs}`, async context => {
    const installation = await open(
      context,
      `
      prompt=$(cat)
      case "$prompt" in
        *'second life'*) echo "I am new" ;;
        *'begin anew'*) ${ask('reset-1', 'reset_context', { message: 'your second life' })}; echo "the old one" ;;
      esac`,
      undefined,
      60_000,
    )
    await installation.say('begin anew')
    await until(async () => (await installation.texts()).some(text => text.includes('I am new')))
    expect(answers(installation)).toContain('"ok":true')
    const runs = await installation.runs()
    expect(runs).toHaveLength(2)
    expect(runs[0]?.status).toBe('done')
    // What was said before is still in the chat.
    expect(await installation.texts()).toContain('the old one')
  })

  attempt(
    `a message whose session cannot start, and whose host is killed, is not lost${needs}`,
    async context => {
      const installation = await open(
        context,
        `
      prompt=$(cat)
      case "$prompt" in
        *'second life'*) if [ ! -e /workspace/group/may-start ]; then exit 1; fi; echo "I am new" ;;
        *) echo working; sleep 1000 ;;
      esac`,
      )
      void installation.say('work').catch(() => undefined)
      await until(async () => (await installation.runs()).length === 1)
      expect(await post(installation, 'main', 'reset_context', { message: 'a second life' })).toMatchObject({
        ok: true,
      })
      await installation.daemon()?.kill()
      await installation.up()
      await until(async () =>
        (await installation.runs()).some(
          ({ status, error }) => status === 'failed' && error?.includes('code 1'),
        ),
      )
      writeFileSync(join(installation.data, 'groups', 'main', 'may-start'), '')
      await until(async () => (await installation.texts()).some(text => text.includes('I am new')))
    },
  )
})

describe.concurrent('finished work', () => {
  const busy = `
    prompt=$(cat)
    case "$prompt" in
      *'do the work'*) ${ask('finish', 'finished_work')}; sleep 1000 ;;
      *) ${ask('not-mine', 'finished_work')}; echo talked ;;
    esac`
  const task = {
    prompt: 'do the work',
    schedule_type: 'cron',
    schedule_value: '0 0 1 1 *',
    context_mode: 'isolated',
  }
  const schedule = async (installation: Installation) => {
    const scheduled = await post(installation, 'main', 'schedule_task', task)
    await installation.runTask(scheduled.result.task_id)
    return scheduled
  }

  attempt(`ends the scheduled run as done, though the agent would go on${needs}`, async context => {
    const installation = await open(context, busy)
    const { result } = await schedule(installation)
    await until(async () =>
      (await installation.runs()).some(({ kind, status }) => kind === 'task' && status !== 'running'),
    )
    expect((await installation.runs()).find(({ kind }) => kind === 'task')).toMatchObject({
      status: 'done',
      error: null,
    })
    const history = JSON.parse(await installation.hatchway('tasks', 'history', result.task_id, '--json'))
    expect(history).toMatchObject([{ status: 'done' }])
    // In a conversation there is nothing to finish.
    await installation.say('hello')
    expect(answers(installation)).toContain('wrong_state')
  })

  attempt(`counts also when the host is killed right after its answer${needs}`, async context => {
    const installation = await open(context, busy)
    const { result } = await schedule(installation)
    await until(async () => answers(installation).includes('"ok":true'))
    await installation.daemon()?.kill()
    await installation.up()
    await until(async () => (await installation.runs()).every(({ status }) => status !== 'running'))
    expect(await installation.runs()).toMatchObject([{ kind: 'task', status: 'done' }])
    const history = JSON.parse(await installation.hatchway('tasks', 'history', result.task_id, '--json'))
    expect(history).toMatchObject([{ status: 'done' }])
  })

  attempt(`is each group’s own matter${needs}`, async context => {
    const installation = await open(
      context,
      `prompt=$(cat); case "$prompt" in *'do the work'*) sleep 1000 ;; esac; echo hm`,
    )
    await installation.addGroup({ folder: 'other', jid: 'local:other', name: 'Other' })
    await schedule(installation)
    await until(async () => (await installation.runs()).some(({ kind }) => kind === 'task'))
    expect(await post(installation, 'other', 'finished_work')).toMatchObject({
      error: { code: 'wrong_state' },
    })
    expect((await installation.runs()).find(({ kind }) => kind === 'task')?.status).toBe('running')
  })
})

describe.concurrent('periodic agents', () => {
  const agent = { name: 'Grüße am Morgen', schedule: '0 7 * * *', prompt: 'greet', instructions: 'Be kind.' }
  const echo = 'cat > /dev/null; cat CLAUDE.md'

  attempt(`are made whole, run, and are changed by the same name${needs}`, async context => {
    const installation = await open(context, echo)
    const made = await post(installation, 'main', 'create_periodic_agent', agent, 'once-only')
    expect(made).toMatchObject({ ok: true, result: { folder: 'grusse-am-morgen', status: 'created' } })
    expect(await post(installation, 'main', 'create_periodic_agent', agent, 'once-only')).toEqual(made)
    await installation.runTask(made.result.task_id)
    await until(async () => (await installation.texts('grusse-am-morgen')).includes('Be kind.'))

    const again = { ...agent, schedule: '30 8 * * *', prompt: 'greet again', instructions: 'Be brief.' }
    const changed = await post(installation, 'main', 'create_periodic_agent', again)
    expect(changed.result).toMatchObject({ status: 'changed', task_id: made.result.task_id })
    const tasks = JSON.parse(await installation.hatchway('tasks', 'list', '--json'))
    expect(tasks).toMatchObject([{ schedule_value: '30 8 * * *', prompt: 'greet again' }])
    const groups = JSON.parse(await installation.hatchway('groups', 'list', '--json'))
    expect(groups).toHaveLength(2)
    expect(readFileSync(join(installation.data, 'groups', 'grusse-am-morgen', 'CLAUDE.md'), 'utf8')).toBe(
      'Be brief.',
    )
    expect(await installation.hatchway('audit', '--json')).toContain('create_periodic_agent')
  })

  attempt.for(['committed', 'answered'])(
    `are made once, whole, by a host that is killed (%s)${needs}`,
    async (fault, context) => {
      const installation = await open(context, echo)
      await installation.daemon()?.stop()
      const faulty = launch(installation.data, { env: { HATCHWAY_FAULT: fault, HATCHWAY_TIMEZONE: 'UTC' } })
      await faulty.ready
      dropAs(installation, 'main', envelope('killed', 'create_periodic_agent', agent))
      expect((await faulty.exited).signal).toBe('SIGKILL')
      await installation.up()
      const answer = join(installation.data, 'ipc', 'main', 'responses', 'killed.json')
      await until(async () => existsSync(answer))
      expect(JSON.parse(readFileSync(answer, 'utf8'))).toMatchObject({ ok: true })
      expect(JSON.parse(await installation.hatchway('tasks', 'list', '--json'))).toHaveLength(1)
      expect(JSON.parse(await installation.hatchway('groups', 'list', '--json'))).toHaveLength(2)
      const folder = join(installation.data, 'groups', 'grusse-am-morgen')
      expect(readdirSync(folder).filter(name => name.includes('CLAUDE'))).toEqual(['CLAUDE.md'])
    },
  )

  attempt(`leave nothing behind when something fails on the way${needs}`, async context => {
    const installation = await open(context, echo)
    await installation.addGroup({ folder: 'other', jid: 'local:other', name: 'Other' })
    const state = async () => [
      JSON.parse(await installation.hatchway('groups', 'list', '--json')).map(nameOf),
      await installation.hatchway('tasks', 'list', '--json'),
      readdirSync(join(installation.data, 'groups')).toSorted(),
    ]
    writeFileSync(join(installation.data, 'groups', 'blocked'), 'not a folder')
    const before = await state()
    const attempts: [string, object, string][] = [
      ['main', { ...agent, name: 'blocked' }, 'internal'],
      ['main', { ...agent, name: 'Other' }, 'conflict'],
      ['main', { ...agent, name: 'New', jid: 'local:other' }, 'conflict'],
      ['main', { ...agent, schedule: 'whenever' }, 'bad_schedule'],
      ['main', { ...agent, name: '…' }, 'invalid_field'],
      ['main', { ...agent, name: 'Global' }, 'invalid_field'],
      ['main', { ...agent, name: 'errors' }, 'invalid_field'],
      ['other', agent, 'forbidden'],
    ]
    for (const [group, payload, code] of attempts) {
      expect(await post(installation, group, 'create_periodic_agent', payload)).toMatchObject({
        error: { code },
      })
    }
    expect(await state()).toEqual(before)
  })
})

describe.concurrent('a scheduled run', () => {
  const jobs = { name: 'job', command: 'true', schedule_type: 'cron', schedule_value: '0 0 1 1 *' }
  const wishes: [string, string, object][] = [
    ['a', 'create_periodic_agent', { name: 'Made', schedule: '0 7 * * *', prompt: 'look' }],
    ['b', 'schedule_host_job', jobs],
    ['c', 'deploy', {}],
    ['d', 'sync_worktree', {}],
    ['e', 'reset_context', { message: 'anew' }],
  ]
  const script = `
    prompt=$(cat)
    case "$prompt" in
      *'do the work'*) ${wishes.map(([id, type, payload]) => ask(id, type, payload)).join('\n')}; echo asked ;;
      *) echo "heard anew" ;;
    esac`
  const task = { prompt: 'do the work', schedule_type: 'cron', schedule_value: '0 0 1 1 *' }
  const codes = (installation: Installation, group: string) =>
    answers(installation, group)
      .split('\n')
      .filter(line => line !== '')
      .map(line => JSON.parse(line))
      .map(({ ok, error }) => (ok ? 'done' : error.code))
  const run = async (installation: Installation, group: string) => {
    const scheduled = await post(installation, group, 'schedule_task', task)
    await installation.runTask(scheduled.result.task_id)
    await until(async () => (await installation.texts(group)).includes('heard anew'))
  }

  attempt(`has the rights of its group, and no more${needs}`, async context => {
    const installation = await open(context, script, home => ({
      hostJobs: { enabled: 'yes', directories: [home], users: [userInfo().username] },
    }))
    await installation.addGroup({ folder: 'other', jid: 'local:other', name: 'Other' })
    await run(installation, 'main')
    expect(codes(installation, 'main')).toEqual(['done', 'done', 'unavailable', 'unavailable', 'done'])
    await run(installation, 'other')
    expect(codes(installation, 'other')).toEqual([
      'forbidden',
      'forbidden',
      'forbidden',
      'unavailable',
      'done',
    ])
  })
})
