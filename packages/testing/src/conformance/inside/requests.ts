import { execFileSync } from 'node:child_process'
import { lstatSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually, isThere, readJson } from './boxes.ts'
import { check, isTime, must, mustHave, type Row, rowsOf } from './evidence.ts'
import type { Answer, Kit } from './kit.ts'
import { listed } from './tasks.ts'

const good = ({ ok, result, error }: Answer): Row => {
  must(ok, `refused: ${error}`)
  return result
}
const bad = ({ ok, result, error }: Answer): string => {
  must(!ok, `done: ${JSON.stringify(result)}`)
  return error
}
const tells = (value: unknown, ...words: string[]): string => {
  const text = JSON.stringify(value)
  for (const word of words) must(text.includes(word), `${word} is not in ${text}`)
  return text
}

/** What it has services do, and people. */
export async function askServices(kit: Kit): Promise<void> {
  const { ask } = kit
  if (!ask) return
  const service = (tool: string, input: Row, id?: string) =>
    ask({ command: 'call_service', input: { tool, arguments: input }, ...(id === undefined ? {} : { id }) })

  await check('result', async () => tells(good(await service('count', { to: 3 })), '3'))
  await check('failure', async () => bad(await service('break', {})))
  await check('repeat', async () => {
    const id = `repeated-${Date.now()}`
    const first = good(await service('tally', {}, id))
    const again = good(await service('tally', {}, id))
    must(JSON.stringify(first) === JSON.stringify(again), `${JSON.stringify(first)} ${JSON.stringify(again)}`)
  })
  await check('question', async () => {
    const options = [
      { label: 'Red', description: 'warm' },
      { label: 'Blue', description: 'cold' },
    ]
    const questions = [{ question: 'Which colour?', options }, { question: 'Since when?' }]
    return tells(good(await ask({ command: 'ask_user', input: { questions } })), 'Blue', 'yesterday')
  })
  await check('calendar', async () => {
    tells(good(await service('list_calendars', {})), 'work')
    const event = {
      title: 'Launch',
      start: '2099-03-01T10:00:00',
      end: '2099-03-01T11:00:00',
      calendar: 'work',
    }
    const { event_id } = good(await service('create_event', event))
    const days = { start_date: '2099-03-01', end_date: '2099-03-02', calendar: 'work' }
    tells(good(await service('list_calendar', days)), 'Launch')
    good(await service('delete_event', { event_id, calendar: 'work' }))
    return event_id
  })
  await check('memory', async () => {
    const memory = { key: 'colour', content: 'The door is green.', category: 'core' }
    good(await service('save_memory', memory))
    tells(good(await service('recall_memories', { query: 'door', limit: 5 })), 'green')
    tells(good(await service('list_memories', { category: 'core' })), 'colour')
    good(await service('forget_memory', { key: 'colour' }))
    must(!JSON.stringify(await service('list_memories', {})).includes('green'), 'it is still there')
  })
  await check('todos', async () => {
    const todos = join(kit.ipc, 'todos.json')
    await eventually('todos.json', () => isThere(todos))
    const rows = rowsOf(readJson(todos))
    for (const todo of rows) {
      mustHave(todo, ['id', 'content', 'done', 'created_at'])
      must(typeof todo.id === 'string' && /^[0-9a-f]{8}$/.test(todo.id), `id is ${todo.id}`)
      must(todo.done === false && isTime(todo.created_at), JSON.stringify(todo))
    }
    return tells(rows, 'buy milk')
  })
  if (kit.ownRoot)
    await check('todo-done', async () => {
      const todos = join(kit.ipc, 'todos.json')
      const rows = rowsOf(readJson(todos)).map(todo => ({ ...todo, done: true }))
      writeFileSync(`${todos}.tmp`, JSON.stringify(rows, null, 2))
      renameSync(`${todos}.tmp`, todos)
      // What it reads at once is its own list, and the host's a moment later.
      await eventually('the host’s own list', () =>
        lstatSync(todos, { throwIfNoEntry: false })?.isSymbolicLink(),
      )
      return eventually('it is done', () => rowsOf(readJson(todos)).every(({ done }) => done === true))
    })
}

const git = (directory: string, ...args: string[]) =>
  execFileSync('git', ['-C', directory, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

/** What it may do in its shell, and where its commits go. */
export async function doWork(kit: Kit): Promise<void> {
  const { ask } = kit
  if (!ask) return
  const may = (command: string) => ask({ command: 'check_shell', input: { command } })
  await check('shell-allow', async () => {
    const { decision } = good(await may('ls -l'))
    must(decision === 'allow', `decision is ${decision}`)
  })
  await check('shell-deny', async () => bad(await may('curl https://example.org/collect')))

  const project = process.env.HATCHWAY_PROJECT_DIR ?? '/workspace/project'
  await check('merge-success', async () => {
    writeFileSync(join(project, 'from-inside.txt'), 'made in the container\n')
    git(project, 'add', 'from-inside.txt')
    git(project, 'commit', '--quiet', '--message', 'made in the container')
    return tells(good(await ask({ command: 'sync_worktree', input: {} })), 'message')
  })
  await check('merge-failure', async () => {
    writeFileSync(join(project, 'from-inside.txt'), 'changed and not committed\n')
    return bad(await ask({ command: 'sync_worktree', input: {} }))
  })
}

/** What it asks of the host itself; in another group than the main one all of it is refused. */
export async function askHost(kit: Kit): Promise<void> {
  const { tell } = kit
  if (!tell) return
  await tell('schedule_host_job', {
    name: `${kit.who.folder} job`,
    command: 'echo it ran > job-ran.txt',
    schedule_type: 'once',
    schedule_value: new Date(Date.now() + 4000).toISOString(),
    timeout_seconds: 60,
  })
  await tell('create_periodic_agent', {
    name: `Morning news of ${kit.who.folder}`,
    schedule: '0 7 1 1 *',
    prompt: 'What is new?',
    context_mode: 'isolated',
    instructions: 'Be brief.',
    jid: `local:news-of-${kit.who.folder}`,
  })
  if (!kit.who.main) {
    await tell('deploy', { rebuild: false, resume_prompt: 'do nothing' })
    return
  }
  await check('tasks-host', async () => {
    const job = await eventually('the job is listed', () =>
      listed(kit).find(task => JSON.stringify(task).includes('main job')),
    )
    return kit.checkJob?.(job)
  })
  // It is gone from the list when it has run.
  await eventually('the job has run', () =>
    listed(kit).every(task => !JSON.stringify(task).includes('main job') || task.status === 'completed'),
  )
  await sleep(100)
}
