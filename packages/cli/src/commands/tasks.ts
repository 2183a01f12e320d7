import type { OccurrenceAnswer } from '@hatchway/host/api'
import type { Task } from '@hatchway/protocol'
import type { Command } from 'commander'
import { once, printList, when } from '../list.ts'
import { type CommonOptions, common, positive } from '../options.ts'
import { printJson, printLine } from '../output.ts'
import { withClient } from '../session.ts'
import type { Column } from '../table.ts'
import { visible } from '../text.ts'

const columns: Column<Task>[] = [
  { title: 'ID', value: task => task.id, flexible: true },
  { title: 'GROUP', value: task => task.group, flexible: true },
  { title: 'STATUS', value: task => task.status },
  { title: 'NEXT RUN', value: task => when(task.next_run) },
  { title: 'SCHEDULE', value: task => `${task.schedule_type} ${task.schedule_value}`, flexible: true },
  { title: 'ZONE', value: task => task.timezone },
  { title: 'PROMPT', value: task => task.prompt, flexible: true },
]

const took = ({ started_at, ended_at }: OccurrenceAnswer) =>
  started_at === null || ended_at === null
    ? '-'
    : `${((Date.parse(ended_at) - Date.parse(started_at)) / 1000).toFixed(1)} s`

const historyColumns: Column<OccurrenceAnswer>[] = [
  { title: 'DUE', value: one => when(one.due_at) },
  { title: 'STATUS', value: one => (one.manual ? `${one.status}, asked for` : one.status) },
  { title: 'TOOK', value: took, right: true },
  { title: 'RUN', value: one => one.run_id ?? '-' },
  { title: 'RESULT', value: one => one.error ?? one.result ?? '-', flexible: true },
]

const actions = [
  { name: 'pause', description: 'keep a task from running', done: 'is paused' },
  { name: 'resume', description: 'let a paused task run again', done: 'will run again' },
  { name: 'cancel', description: 'end a task for good', done: 'is cancelled' },
  { name: 'run', description: 'run a task now, beside its schedule', done: 'runs now' },
] as const

export function addTasks(program: Command): void {
  const tasks = program.command('tasks').description('what agents have scheduled')

  common(tasks.command('list').description('tasks that will run or are paused'), 'tasks list --group family')
    .option('--group <folder>', 'only this group’s')
    .option('--all', 'completed and cancelled ones too')
    .action((options: CommonOptions & { group?: string; all?: boolean }) =>
      withClient(options, (client, api) => {
        const query = new URLSearchParams()
        if (options.group !== undefined) query.set('group', options.group)
        if (options.all) query.set('all', '1')
        return printList(
          options,
          once(client.get(`/tasks?${query}`, api.tasksAnswer)),
          columns,
          options.all ? 'There is no task.' : 'There is no task. Those that are over are shown with --all.',
        )
      }),
    )

  common(
    tasks.command('history').description('when a task was due, and what came of it, oldest first'),
    'tasks history 7',
  )
    .argument('<id>')
    .option('--limit <number>', 'so many, at most 10000', positive, 100)
    .action((id: string, options: CommonOptions & { limit: number }) =>
      withClient(options, (client, api) =>
        printList(
          options,
          once(
            client.get(
              `/tasks/${encodeURIComponent(id)}/history?limit=${options.limit}`,
              api.occurrencesAnswer,
            ),
          ),
          historyColumns,
          'It was not due yet.',
        ),
      ),
    )

  for (const { name, description, done } of actions) {
    common(tasks.command(name).description(description), `tasks ${name} 7`)
      .argument('<id>')
      .action(async (id: string, options: CommonOptions) => {
        const result = await withClient(options, (client, api) =>
          client.post(`/tasks/${encodeURIComponent(id)}/${name}`, undefined, api.resultAnswer),
        )
        if (options.json) return printJson(result)
        await printLine(`Task ${visible(id)} ${done}.`)
      })
  }
}
