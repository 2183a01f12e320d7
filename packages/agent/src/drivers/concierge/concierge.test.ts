import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { recordSeparator, runEventSchema } from '@hatchway/protocol'
import { expect, onTestFinished, test } from 'vitest'
import { agent, jsonFiles, listing, playHost, until } from '../../mcp/testing.ts'
import { keyFor } from './serve.ts'

/** The concierge as a process of its own, with the host's services played by the test. */

type Host = ReturnType<typeof playHost>
type Asked = Awaited<ReturnType<Host['take']>>

/** What it answers to each message, one after the other. */
async function answersTo(host: Host, messages: readonly string[], zone?: string): Promise<string[]> {
  const child = spawn(process.execPath, [agent, 'run'], {
    env: { PATH: process.env.PATH ?? '', HATCHWAY_IPC: host.ipc, HATCHWAY_GROUP_DIR: host.ipc },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  const start = {
    version: 1,
    run_id: 'r1',
    kind: 'chat',
    group: { folder: 'family', name: 'Family', jid: 'family@chat', main: false },
    assistant: 'Hatch',
    timezone: 'Europe/Berlin',
    session_id: null,
    model: null,
    task: null,
    inputs: messages.map((text, i) => ({
      id: `i${i}`,
      text,
      sender: 'ann@chat',
      sender_name: 'Ann',
      timestamp: '2026-01-31T09:30:00Z',
      ...(zone !== undefined && { timezone: zone }),
    })),
    context: [],
    driver: { name: 'concierge' },
    events: 'auto',
  }
  child.stdin.end(JSON.stringify(start))
  const events = () =>
    out
      .split('\n')
      .filter(line => line.startsWith(recordSeparator))
      .map(line => runEventSchema.parse(JSON.parse(line.slice(1))))
  const answers = () =>
    events().flatMap(event =>
      event.type === 'result' ? [event.text ?? ''] : event.type === 'error' ? [event.message] : [],
    )
  await until(() => answers().length === messages.length)
  return answers()
}

/** Answers requests as they come, until the test is over. */
function serve(host: Host, answer: (asked: Asked) => object | { refused: string }): Asked[] {
  const heard: Asked[] = []
  let over = false
  onTestFinished(() => {
    over = true
  })
  const serving = async () => {
    while (!over) {
      await until(() => over || jsonFiles(host.tasks).length > 0)
      if (over) return
      const asked = await host.take()
      heard.push(asked)
      const result = answer(asked)
      if ('refused' in result) host.refuse(asked.id, result.refused, 'so it is')
      else host.answer(asked.id, result)
    }
  }
  void serving()
  return heard
}

const offered = (...names: string[]) => names.map(name => listing(name, { input_schema: { type: 'object' } }))
const memoryTools = offered('save_memory', 'recall_memories', 'list_memories', 'forget_memory')
const todoTools = offered('list_todos', 'add_todo', 'complete_todo')

const argumentsOf = ({ payload }: Asked) => Object(payload.arguments)

/** Memories and todos as simple as can be. */
function playServices(host: Host, choose: (asked: Asked) => object = () => ({ refused: 'expired' })) {
  const memories = new Map<string, string>()
  const todos: { id: string; content: string; done: boolean; created_at: string }[] = []
  const listed = () => [...memories].map(([key, content]) => ({ key, content, category: 'core' }))
  const heard = serve(host, asked => {
    if (asked.type === 'ask_user') return choose(asked)
    if (asked.type !== 'call_service') return { task_id: '1', status: 'cancelled', next_run: null }
    const { key, content, query, todo_id } = argumentsOf(asked)
    switch (asked.payload.tool) {
      case 'save_memory':
        memories.set(key, content)
        return { key }
      case 'recall_memories':
        return {
          memories: listed().filter(memory =>
            String(query)
              .split(' ')
              .some(word => memory.content.includes(word)),
          ),
        }
      case 'list_memories':
        return { memories: listed() }
      case 'forget_memory':
        return { key, forgotten: memories.delete(key) }
      case 'list_todos':
        return { todos: todos.filter(({ done }) => !done) }
      case 'add_todo': {
        const todo = {
          id: `0000000${todos.length}`,
          content,
          done: false,
          created_at: '2026-01-31T09:30:00Z',
        }
        todos.push(todo)
        return { todo }
      }
      case 'complete_todo': {
        const todo = todos.find(({ id }) => id === todo_id)
        if (!todo) return { refused: 'not_found' }
        todo.done = true
        return { todo }
      }
      default:
        return { refused: 'unavailable' }
    }
  })
  return { memories, todos, heard }
}

test('what the host does not offer is said to be so', async () => {
  const host = playHost()
  const answers = await answersTo(host, [
    'remember that the code is 1234',
    'todos',
    'what is on my calendar today?',
    'help',
  ])
  expect(answers.slice(0, 3)).toEqual([
    'I cannot remember things here: the host does not offer it.',
    'I cannot keep a list of things to do here: the host does not offer it.',
    'I cannot look into a calendar here: the host does not offer it.',
  ])
  expect(answers[3]).not.toContain('calendar')
  expect(jsonFiles(host.tasks)).toEqual([])
})

test('goes by the clock of whoever writes', async () => {
  const host = playHost()
  const at = ['what time is it?']
  expect(await answersTo(host, at, 'Asia/Tokyo')).toEqual([expect.stringContaining('(Asia/Tokyo)')])
  expect(await answersTo(host, at, 'Nowhere/Land')).toEqual([expect.stringContaining('(Europe/Berlin)')])
})

test('remembers, recalls and forgets', async () => {
  const host = playHost()
  host.offer(memoryTools)
  const { memories } = playServices(host)
  const answers = await answersTo(host, [
    'what do you remember?',
    'remember that the code is 1234',
    'note that Ann has the spare key',
    'note that Bo has the code of the boat',
    'what do you remember about Ann?',
    'forget the code is 1234',
    'forget the spare key',
    'forget bo-has-the-code-of-the-boat',
    'forget the boat',
    'what do you remember about boats?',
    'help',
  ])
  expect(answers.slice(0, 10)).toEqual([
    'I remember nothing yet.',
    'I’ll remember: the code is 1234',
    'I’ll remember: Ann has the spare key',
    'I’ll remember: Bo has the code of the boat',
    'I remember:\n• Ann has the spare key',
    'I have forgotten: the code is 1234',
    expect.stringMatching(/^Which one\? .*\n• ann-has-the-spare-key: Ann has the spare key/s),
    'I have forgotten: Bo has the code of the boat',
    expect.stringMatching(/^Which one\? /),
    'I remember nothing about that.',
  ])
  expect(answers[10]).toContain('• remember that')
  expect([...memories.values()]).toEqual(['Ann has the spare key'])
})

test('keeps the list of things to do', async () => {
  const host = playHost()
  host.offer(todoTools)
  const { todos } = playServices(host)
  const answers = await answersTo(host, [
    'todos',
    'add milk to my list',
    'add todo call Ann',
    'add a todo: call Bo',
    'what is on my list?',
    'done milk',
    'done 2',
    'done call',
    'done dishes',
    'list todos',
  ])
  expect(answers).toEqual([
    'There is nothing to do.',
    'It is on the list: milk',
    'It is on the list: call Ann',
    'It is on the list: call Bo',
    'There are 3 things to do:\n1. milk\n2. call Ann\n3. call Bo',
    'Done: milk',
    // as it was shown, and not as it is by now
    'Done: call Ann',
    'Done: call Bo',
    'I know of no such thing to do. Ask me for the list with “todos”.',
    'There is nothing to do.',
  ])
  expect(todos.every(({ done }) => done)).toBe(true)
})

test('tells what is on the calendars, in order', async () => {
  const host = playHost()
  host.offer(offered('list_calendars', 'list_calendar'))
  const heard = serve(host, asked => {
    if (asked.payload.tool === 'list_calendars') {
      return { calendars: ['work', 'home'].map(name => ({ account: 'ann', name, primary: false })) }
    }
    const { start_date, calendar } = argumentsOf(asked)
    const at = (time: string) => `${start_date}T${time}:00+01:00`
    return {
      events:
        calendar === 'ann/work'
          ? [{ title: 'Dentist', start: at('09:00'), end: at('10:30'), all_day: false }]
          : [
              { title: 'Holiday', start: start_date, end: '2999-12-31', all_day: true },
              { start: at('08:00'), end: at('08:30'), all_day: false },
            ],
    }
  })
  const [answer] = await answersTo(host, ['what is on my calendar tomorrow?'])
  expect(answer?.split('\n')).toEqual([
    'On the calendar tomorrow:',
    '• tomorrow to Tuesday 31 December, all day: Holiday',
    expect.stringMatching(/^• tomorrow, \d\d:00–\d\d:30: without a title$/),
    expect.stringMatching(/^• tomorrow, \d\d:00–\d\d:30: Dentist$/),
  ])
  const { start_date, end_date } = argumentsOf(heard[1] ?? expect.fail())
  expect(start_date).toMatch(/^\d{4}-\d\d-\d\d$/)
  expect(end_date).toBe(start_date)
})

const taskOf = (id: string, prompt: string) => ({
  id,
  group: 'family',
  jid: 'family@chat',
  created_by: 'family',
  prompt: `Remind: ${prompt}`,
  script: null,
  model: null,
  schedule_type: 'cron',
  schedule_value: '0 9 * * *',
  timezone: 'Europe/Berlin',
  context_mode: 'isolated',
  status: 'active',
  next_run: '2030-01-31T08:00:00.000Z',
  last_run: null,
  last_result: null,
  created_at: '2026-01-31T09:30:00.000Z',
})

test('lets a person choose by a click which of several is meant', async () => {
  const host = playHost()
  host.offer([...memoryTools, ...todoTools], { timeout_ms: 600_000 })
  const tasks = [taskOf('7', 'stretch the legs'), taskOf('9', 'stretch the arms')]
  writeFileSync(join(host.ipc, 'current_tasks.json'), JSON.stringify(tasks))
  const chosen = [
    { answer: 'stretch the arms (…)', option: 2, by: 'Ann' },
    { answer: 'task 7', by: 'Ann' },
    { answer: 'None of them', option: 3, by: 'Ann' },
    { answer: 'what?', by: 'Ann' },
    undefined,
    { answer: 'call Bo', option: 2, by: 'Ann' },
  ]
  const { heard, todos } = playServices(host, ({ payload }) => {
    const answer = chosen.shift()
    const { question } = Object(payload.questions)[0]
    return answer ? { answers: [{ question, ...answer }] } : { refused: 'expired' }
  })
  const answers = await answersTo(host, [
    ...Array.from({ length: 5 }, () => 'cancel the stretch reminder'),
    'add todo call Ann',
    'add todo call Bo',
    'done call',
  ])
  expect(answers.slice(0, 3)).toEqual([
    'Task 9 is cancelled.',
    'Task 7 is cancelled.',
    'All right, they stay as they are.',
  ])
  for (const answer of answers.slice(3, 5)) expect(answer).toMatch(/^Which one\? .*\n7\. .*\n9\. /)
  expect(answers.at(-1)).toBe('Done: call Bo')
  expect(todos.map(({ done }) => done)).toEqual([false, true])
  expect(heard.filter(({ type }) => type === 'cancel_task').map(({ payload }) => payload)).toEqual([
    { task_id: '9' },
    { task_id: '7' },
  ])
  expect(heard.find(({ type }) => type === 'ask_user')?.payload).toMatchObject({
    questions: [
      {
        question: 'Which one?',
        options: [
          { label: expect.stringContaining('stretch the legs'), description: 'task 7' },
          { label: expect.stringContaining('stretch the arms'), description: 'task 9' },
          { label: 'None of them' },
        ],
      },
    ],
  })
})

test('a key is made of the words, and two long texts that begin alike are told apart', () => {
  expect(keyFor('Ann’s birthday: 3 May!')).toBe('ann-s-birthday-3-may')
  expect(keyFor('生日是五月三日')).toBe('生日是五月三日')
  const long = 'the same beginning of a very long sentence that goes on and on '
  expect(keyFor(`${long}one`)).not.toBe(keyFor(`${long}two`))
  expect(keyFor('👋')).toMatch(/^note-[0-9a-f]+$/)
  for (const text of [`${long}one`, '👋'.repeat(500), '𝒜'.repeat(500)]) {
    expect(keyFor(text).length).toBeLessThanOrEqual(128)
    expect(keyFor(text).isWellFormed()).toBe(true)
  }
})
