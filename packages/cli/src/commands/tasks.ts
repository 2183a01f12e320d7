import { readFile } from 'node:fs/promises'
import type { OccurrenceAnswer, UpcomingAnswer } from '@hatchway/host/api'
import type { Task } from '@hatchway/protocol'
import { contextModes } from '@hatchway/protocol/names'
import { call, family, list } from '../command.ts'
import { usageError } from '../failure.ts'
import { briefId, duration, timeColumn, when } from '../format.ts'
import {
  choice,
  flag,
  group,
  limit,
  parsed,
  positive,
  removable,
  required,
  requiredText,
  text,
  withDefault,
} from '../inputs.ts'
import { givenSchedule, requiredSchedule, scheduleInputs, scheduleInWords } from '../schedule.ts'
import { url } from '../session.ts'
import type { Column } from '../table.ts'
import { visible } from '../text.ts'

export const columns: Column<Task>[] = [
  { title: 'ID', value: task => task.id, flexible: true },
  { title: 'GROUP', value: task => task.group, flexible: true },
  { title: 'STATUS', value: task => task.status },
  timeColumn('NEXT RUN', task => task.next_run),
  { title: 'SCHEDULE', value: scheduleInWords, flexible: true },
  { title: 'ZONE', value: task => task.timezone, spare: true },
  { title: 'PROMPT', value: task => task.prompt, flexible: true },
]

export const historyColumns: Column<OccurrenceAnswer>[] = [
  timeColumn('DUE', occurrence => occurrence.due_at),
  { title: 'STATUS', value: ({ status, manual }) => (manual ? `${status}, manual` : status) },
  { title: 'TOOK', value: duration, right: true },
  { title: 'RUN', value: occurrence => occurrence.run_id ?? '-', brief: briefId },
  { title: 'RESULT', value: ({ error, result }) => error ?? result ?? '-', flexible: true },
]

const upcomingColumns: Column<UpcomingAnswer[number]>[] = [
  timeColumn('AT', run => run.at),
  { title: 'TASK', value: run => run.task_id, flexible: true },
  { title: 'GROUP', value: run => run.group, flexible: true },
  { title: 'PROMPT', value: run => run.prompt, flexible: true },
]

const id = required('the task’s id, from tasks list')
const context = choice('mode', 'continue the group’s conversation, or start without it', contextModes)
const aboutScript = 'a shell script that runs first, and decides whether the agent runs'
const aboutModel = 'another model for this task, for Claude and the assistant'

const add = call('add', 'schedule a task', {
  example:
    '--group family --prompt "Remind us: water the plants" --cron "0 9 * * 1-5"\n--group main --prompt "What is new?" --every 2h --context isolated',
  input: {
    group: requiredText('folder', 'the group whose agent runs'),
    prompt: requiredText('text', 'the prompt for the agent'),
    ...scheduleInputs,
    context: withDefault(context, 'group'),
    script: text('file', aboutScript),
    model: text('name', aboutModel),
    id: text('id', 'an id of your choice; refused if it exists'),
  },
  call: async (client, api, given) => {
    const { group, prompt, zone, context, script, model, id } = given
    const body = {
      group,
      prompt,
      ...requiredSchedule(given),
      timezone: zone,
      context_mode: context,
      script: script === undefined ? undefined : await readFile(script, 'utf8'),
      model,
      task_id: id,
    }
    return client.post('/tasks', body, api.changedTaskAnswer)
  },
  print: task => `Task ${visible(task.task_id)} is scheduled, next run ${when(task.next_run)}.`,
})

const edit = call('edit', 'change a task; options that are left out stay as they are', {
  example: '7 --prompt "Water the plants, and the cat"\n7 --every 10m --no-script',
  input: {
    id,
    prompt: text('text', 'the prompt for the agent'),
    ...scheduleInputs,
    context,
    script: removable('file', aboutScript, 'remove the script'),
    model: removable('name', aboutModel, 'use the usual model again'),
  },
  call: async (client, api, given) => {
    const { id, prompt, zone, context, script, model } = given
    const body = {
      prompt,
      ...givenSchedule(given),
      timezone: zone,
      context_mode: context,
      // The protocol removes a script or a model with an empty text.
      script: typeof script === 'string' ? await readFile(script, 'utf8') : script === false ? '' : undefined,
      model: model === false ? '' : model,
    }
    if (Object.values(body).every(value => value === undefined))
      throw usageError('Say what to change, for example with --prompt or --cron.')
    return client.patch(url`/tasks/${id}`, body, api.changedTaskAnswer)
  },
  print: task => `Task ${visible(task.task_id)} is ${task.status}, next run ${when(task.next_run)}.`,
})

const actions = [
  { name: 'pause', about: 'pause a task', done: 'is paused' },
  { name: 'resume', about: 'resume a paused task', done: 'is active again' },
  { name: 'cancel', about: 'cancel a task for good', done: 'is cancelled' },
  { name: 'run', about: 'run a task now, in addition to its schedule', done: 'runs now' },
].map(({ name, about, done }) =>
  call(name, about, {
    example: '7',
    input: { id },
    call: (client, api, { id }) => client.post(url`/tasks/${id}/${name}`, undefined, api.resultAnswer),
    print: (_, { id }) => `Task ${visible(id)} ${done}.`,
  }),
)

export default family('tasks', 'manage scheduled tasks', [
  list('list', 'list active and paused tasks', {
    example: '--group family',
    input: { group, all: flag('include completed and cancelled ones') },
    rows: (client, api, { group, all }) => client.get(url`/tasks?${{ group, all }}`, api.tasksAnswer),
    columns,
    empty: ({ all }) => (all ? 'No tasks.' : 'No tasks. --all also lists completed and cancelled ones.'),
  }),
  add,
  edit,
  list('upcoming', 'list the next runs of tasks, soonest first; at most 1000', {
    example: '--days 7 --group family',
    input: { group, days: withDefault(parsed('number', 'how many days ahead, at most 366', positive), 31) },
    rows: (client, api, { group, days }) =>
      client.get(url`/tasks/upcoming?${{ group, days }}`, api.upcomingAnswer),
    columns: upcomingColumns,
    empty: 'No task runs in this time. Paused tasks are in: npx hatchway tasks list',
  }),
  list('history', 'list past runs of a task and their results, oldest first', {
    example: '7',
    input: { id, limit: limit(100) },
    rows: (client, api, { id, limit }) =>
      client.get(url`/tasks/${id}/history?${{ limit }}`, api.occurrencesAnswer),
    columns: historyColumns,
    empty: 'The task has not run yet.',
  }),
  ...actions,
])
