import type { RunInput } from '@hatchway/protocol'
import { reasonOf } from '@hatchway/spool'
import { isTimeZone } from '../../mcp/local-time.ts'
import { takeTurns } from '../turns.ts'
import type { Driver, DriverContext } from '../types.ts'
import { createServiceAnswers } from './serve.ts'
import { connectTools, type ListedTask, type TaskAnswer, ToolRefusal, type Tools } from './tools.ts'
import { type Intent, understand, type Which, whichOf } from './understand.ts'
import type { When } from './when.ts'
import {
  aboutTask,
  explanation,
  inWords,
  moment,
  promptFor,
  reminderIn,
  scheduleOf,
  shortened,
  subjectOfPrompt,
  taskLine,
  whenInWords,
} from './wording.ts'

/**
 * The agent that is always there: no model, a few forms of plain English, and the same tools as any other agent. Each
 * message is a turn of its own.
 */
export const concierge: Driver = async context => {
  const { start, emit } = context
  let tools: Tools | undefined
  const reached = () => {
    tools ??= connectTools(context)
    return tools
  }
  // A reminder that is due needs no tools, and most chats need them.
  if (start.kind === 'chat') reached()
  const answer = start.kind === 'chat' ? createConversation(context, reached) : remindOf

  const play = async (inputs: readonly RunInput[], stopped: AbortSignal) => {
    for (const input of inputs) {
      if (stopped.aborted) return
      emit({ type: 'used', inputs: [input.id] })
      try {
        emit({ type: 'result', text: await answer(input), session_id: null })
      } catch (error) {
        emit({
          type: 'error',
          message: `The concierge could not answer: ${reasonOf(error)}`,
          session_id: null,
        })
      }
    }
  }
  return takeTurns(play, async () => tools?.close())
}

const remindOf = async ({ text }: RunInput): Promise<string> => reminderIn(text)

function createConversation({ start }: DriverContext, reached: () => Tools) {
  const { assistant, group } = start
  /** of whoever is answered */
  let zone = start.timezone
  /** said without a time, which may come with the next message */
  let unscheduled: string | undefined
  const serve = createServiceAnswers(reached, () => zone)

  const explain = async (): Promise<string> => {
    let offered: ReadonlySet<string> = new Set()
    try {
      offered = await reached().offered()
    } catch (error) {
      // The answer to 'help' then lists what every host has.
      console.error(`What the host offers is unknown: ${reasonOf(error)}`)
    }
    return explanation(assistant, offered)
  }

  const remind = async (when: When, text: string, now: Date): Promise<string> => {
    const task = await reached().schedule({ prompt: promptFor(text), ...scheduleOf(when), timezone: zone })
    const about = text === '' ? '' : `: ${shortened(text)}`
    const next =
      when.type === 'once' || task.next_run === undefined
        ? ''
        : ` The first time is ${moment(new Date(task.next_run), zone, now)}.`
    return `I’ll remind you ${whenInWords(when, zone, now)}${about}.${next} (Task ${task.task_id})`
  }

  const list = async (now: Date): Promise<string> => {
    const open = (await reached().list()).filter(isOpen)
    if (open.length === 0) return 'There are no reminders or tasks.'
    return [
      open.length === 1 ? 'There is one task:' : `There are ${open.length} tasks:`,
      ...open.map(task => taskLine(task, zone, now, group.folder)),
    ].join('\n')
  }

  const onTasks = async (
    which: Which,
    now: Date,
    act: (id: string) => Promise<TaskAnswer>,
    render: (ids: string, answers: readonly TaskAnswer[]) => string,
  ): Promise<string> => {
    let found = await find(which, reached, group.folder)
    if ('question' in found && found.tasks.length > 1) {
      const chosen = await reached().choose(
        'Which one?',
        found.tasks,
        task => ({ label: aboutTask(task, zone, now, group.folder), description: `task ${task.id}` }),
        ({ id }, words) => isId(whichOf(words), id),
      )
      if (chosen === 'none') return 'All right, they stay as they are.'
      if (chosen) found = { ids: [chosen.id] }
    }
    if ('question' in found) {
      const lines = found.tasks.map(task => taskLine(task, zone, now, group.folder))
      return [found.question, ...lines].join('\n')
    }
    const answers: TaskAnswer[] = []
    for (const id of found.ids) answers.push(await act(id))
    return render(`${found.ids.length > 1 ? 'Tasks' : 'Task'} ${inWords(found.ids)}`, answers)
  }

  const next = ([first]: readonly TaskAnswer[], now: Date): string =>
    first?.next_run === undefined ? '' : ` Next: ${moment(new Date(first.next_run), zone, now)}.`

  const act = async (intent: Intent, now: Date): Promise<string> => {
    const pending = unscheduled
    unscheduled = undefined
    switch (intent.kind) {
      case 'remind':
        return remind(intent.when, intent.text, now)
      case 'only_time':
        return remind(intent.when, pending ?? '', now)
      case 'no_time':
        unscheduled = intent.text
        return `When? Tell me a time such as “in ten minutes”, “tomorrow at 9” or “every weekday at 9”.`
      case 'list':
        return list(now)
      case 'pause':
      case 'resume':
      case 'cancel': {
        const done = { pause: 'paused', resume: 'running again', cancel: 'cancelled' }[intent.kind]
        return onTasks(
          intent.which,
          now,
          id => reached().change(intent.kind, id),
          (tasks, answers) =>
            `${tasks} ${answers.length > 1 ? 'are' : 'is'} ${done}.${intent.kind === 'resume' ? next(answers, now) : ''}`,
        )
      }
      case 'change': {
        const changes = {
          ...(intent.when ? { ...scheduleOf(intent.when), timezone: zone } : {}),
          ...(intent.text === undefined ? {} : { prompt: promptFor(intent.text) }),
        }
        return onTasks(
          intent.which,
          now,
          id => reached().update(id, changes),
          (tasks, answers) => `${tasks} ${answers.length > 1 ? 'are' : 'is'} changed.${next(answers, now)}`,
        )
      }
      case 'clock':
        return `It is ${moment(now, zone, now).replace('today at ', '')} ${new Intl.DateTimeFormat('en-GB', { timeZone: zone, dateStyle: 'full' }).format(now)} (${zone}).`
      case 'greeting':
        return `Hello! ${await explain()}`
      case 'thanks':
        return 'You’re welcome.'
      case 'help':
        return explain()
      case 'unknown':
        return `I did not understand that. ${await explain()}`
      default:
        return serve(intent, now)
    }
  }

  /** Whoever is elsewhere than the group’s clock is told which one was taken. */
  const tellsTimes = ['remind', 'only_time', 'change', 'list', 'resume', 'cancel']
  return async ({ text, timezone }: RunInput): Promise<string> => {
    const now = new Date()
    zone = timezone !== undefined && isTimeZone(timezone) ? timezone : start.timezone
    try {
      const intent = understand(text, now, zone, assistant)
      const answer = await act(intent, now)
      const isElsewhere = zone !== start.timezone && tellsTimes.includes(intent.kind)
      return isElsewhere ? `${answer}\nTimes are those of ${zone}.` : answer
    } catch (error) {
      if (error instanceof ToolRefusal) return error.message
      throw error
    }
  }
}

const isId = (which: Which, id: string) => which !== 'all' && 'id' in which && which.id === id

const isOpen = ({ status }: ListedTask) => status === 'active' || status === 'paused'

type Found = { ids: readonly string[] } | { question: string; tasks: readonly ListedTask[] }

/** An id is the host's to know. Words must fit exactly one task: nothing is cancelled by a guess. */
async function find(which: Which, reached: () => Tools, ownGroup: string): Promise<Found> {
  if (which !== 'all' && 'id' in which) return { ids: [which.id] }
  const open = (await reached().list()).filter(isOpen)
  if (which === 'all') {
    const own = open.filter(({ group }) => group === ownGroup)
    return own.length > 0
      ? { ids: own.map(({ id }) => id) }
      : { question: 'There are no reminders or tasks.', tasks: [] }
  }
  const words = which.words.toLowerCase()
  const fitting =
    words === '' ? open : open.filter(({ prompt }) => subjectOfPrompt(prompt).toLowerCase().includes(words))
  const [only, ...others] = fitting
  if (only && others.length === 0) return { ids: [only.id] }
  return only
    ? { question: 'Which one? Say it with its number, such as “cancel task 3”.', tasks: fitting }
    : { question: 'I know of no such task. Ask me for the list with “list tasks”.', tasks: [] }
}
