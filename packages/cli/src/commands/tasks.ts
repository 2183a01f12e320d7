import { readFile } from 'node:fs/promises'
import type { OccurrenceAnswer, UpcomingAnswer } from '@hatchway/host/api'
import type { Task } from '@hatchway/protocol'
import { type Command, Option } from 'commander'
import { briefId, briefTime, once, printList, when } from '../list.ts'
import { type CommonOptions, common, positive } from '../options.ts'
import { printJson, printLine } from '../output.ts'
import { queryOf } from '../query.ts'
import {
  givenSchedule,
  neededSchedule,
  type ScheduleOptions,
  scheduleInWords,
  withSchedule,
} from '../schedule.ts'
import { withClient } from '../session.ts'
import type { Column } from '../table.ts'
import { visible } from '../text.ts'

interface AddOptions extends CommonOptions, ScheduleOptions {
  group: string
  prompt: string
  id?: string
  context?: string
  script?: string
  model?: string
}

interface EditOptions extends CommonOptions, ScheduleOptions {
  prompt?: string
  context?: string
  /** false: it goes */
  script?: string | false
  model?: string | false
}

/** The protocol's; written here too, so that `--help` need not load it. A test compares them. */
export const contextChoices = ['group', 'isolated']

export const columns: Column<Task>[] = [
  { title: 'ID', value: task => task.id, flexible: true },
  { title: 'GROUP', value: task => task.group, flexible: true },
  { title: 'STATUS', value: task => task.status },
  { title: 'NEXT RUN', value: task => when(task.next_run), brief: briefTime },
  { title: 'SCHEDULE', value: scheduleInWords, flexible: true },
  { title: 'ZONE', value: task => task.timezone, spare: true },
  { title: 'PROMPT', value: task => task.prompt, flexible: true },
]

const took = ({ started_at, ended_at }: OccurrenceAnswer) =>
  started_at === null || ended_at === null
    ? '-'
    : `${((Date.parse(ended_at) - Date.parse(started_at)) / 1000).toFixed(1)} s`

export const historyColumns: Column<OccurrenceAnswer>[] = [
  { title: 'DUE', value: one => when(one.due_at), brief: briefTime },
  { title: 'STATUS', value: one => (one.manual ? `${one.status}, asked for` : one.status) },
  { title: 'TOOK', value: took, right: true },
  { title: 'RUN', value: one => one.run_id ?? '-', brief: briefId },
  { title: 'RESULT', value: one => one.error ?? one.result ?? '-', flexible: true },
]

const upcomingColumns: Column<UpcomingAnswer[number]>[] = [
  { title: 'AT', value: run => when(run.at), brief: briefTime },
  { title: 'TASK', value: run => run.task_id, flexible: true },
  { title: 'GROUP', value: run => run.group, flexible: true },
  { title: 'PROMPT', value: run => run.prompt, flexible: true },
]

const actions = [
  { name: 'pause', description: 'keep a task from running', done: 'is paused' },
  { name: 'resume', description: 'let a paused task run again', done: 'will run again' },
  { name: 'cancel', description: 'end a task for good', done: 'is cancelled' },
  { name: 'run', description: 'run a task now, beside its schedule', done: 'runs now' },
] as const

export function addTasks(program: Command): void {
  const tasks = program.command('tasks').description('what agents are woken for, and when')

  common(tasks.command('list').description('tasks that will run or are paused'), 'tasks list --group family')
    .option('--group <folder>', 'only this group’s')
    .option('--all', 'completed and cancelled ones too')
    .action((options: CommonOptions & { group?: string; all?: boolean }) =>
      withClient(options, (client, api) => {
        const query = queryOf({ group: options.group, all: options.all ? '1' : undefined })
        return printList(
          options,
          once(client.get(`/tasks?${query}`, api.tasksAnswer)),
          columns,
          options.all ? 'There is no task.' : 'There is no task. Those that are over are shown with --all.',
        )
      }),
    )

  addAdd(tasks)
  addEdit(tasks)

  common(
    tasks.command('upcoming').description('when tasks will run, soonest first; at most 1000'),
    'tasks upcoming --days 7 --group family',
  )
    .option('--group <folder>', 'only this group’s')
    .option('--days <number>', 'so far ahead, at most 366', positive, 31)
    .action((options: CommonOptions & { group?: string; days: number }) =>
      withClient(options, (client, api) =>
        printList(
          options,
          once(
            client.get(
              `/tasks/upcoming?${queryOf({ group: options.group, days: options.days })}`,
              api.upcomingAnswer,
            ),
          ),
          upcomingColumns,
          'No task will run in this time. Those that are paused are shown by: npx hatchway tasks list',
        ),
      ),
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

function addAdd(tasks: Command): void {
  const add = common(
    tasks.command('add').description('have a group’s agent woken, once or again and again'),
    'tasks add --group family --prompt "Remind us: water the plants" --cron "0 9 * * 1-5"\ntasks add --group main --prompt "What is new?" --every 2h --context isolated',
  )
  withSchedule(
    add
      .requiredOption('--group <folder>', 'whose agent')
      .requiredOption('--prompt <text>', 'what it is told then'),
  )
    .option('--zone <name>', 'the time zone of that; left out: the configured one')
    .addOption(contextOption('what it goes on with: the group’s conversation, or nothing').default('group'))
    .option('--script <file>', 'a shell script that runs first, and decides whether the agent is woken')
    .option('--model <name>', 'another model for Claude')
    .option('--id <id>', 'an id of your choice; refused if it is taken')
    .action(async (options: AddOptions) => {
      const body = {
        group: options.group,
        prompt: options.prompt,
        ...neededSchedule(options, add),
        timezone: options.zone,
        context_mode: options.context,
        script: options.script === undefined ? undefined : await readFile(options.script, 'utf8'),
        model: options.model,
        task_id: options.id,
      }
      const task = await withClient(options, (client, api) =>
        client.post('/tasks', body, api.changedTaskAnswer),
      )
      if (options.json) return printJson(task)
      await printLine(`Task ${visible(task.task_id)} runs next ${when(task.next_run)}.`)
    })
}

function addEdit(tasks: Command): void {
  const edit = common(
    tasks.command('edit').description('change what is given of a task; its next run is computed again'),
    'tasks edit 7 --prompt "Water the plants, and the cat"\ntasks edit 7 --every 10m --no-script',
  )
  withSchedule(edit.argument('<id>').option('--prompt <text>', 'what the agent is told'))
    .option('--zone <name>', 'the time zone of that')
    .addOption(contextOption('what it goes on with: the group’s conversation, or nothing'))
    .option('--script <file>', 'a shell script that runs first, and decides whether the agent is woken')
    .option('--no-script', 'no script any more')
    .option('--model <name>', 'another model for Claude')
    .option('--no-model', 'the usual model again')
    .action(async (id: string, options: EditOptions) => {
      const { script, model } = options
      const body = {
        prompt: options.prompt,
        ...givenSchedule(options, edit),
        timezone: options.zone,
        context_mode: options.context,
        // The protocol's word for none is an empty one.
        script: script === false ? '' : script === undefined ? undefined : await readFile(script, 'utf8'),
        model: model === false ? '' : model,
      }
      if (Object.values(body).every(value => value === undefined))
        edit.error('error: Say what is to change, for instance with --prompt or --cron.')
      const task = await withClient(options, (client, api) =>
        client.patch(`/tasks/${encodeURIComponent(id)}`, body, api.changedTaskAnswer),
      )
      if (options.json) return printJson(task)
      await printLine(
        `Task ${visible(task.task_id)} is ${task.status}, and runs next ${when(task.next_run)}.`,
      )
    })
}

const contextOption = (description: string) =>
  new Option('--context <mode>', description).choices(contextChoices)
