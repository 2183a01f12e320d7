import { scheduleTypeSchema, taskStatusSchema } from '@hatchway/protocol'
import { z } from 'zod'
import { called, openSession } from '../../mcp/session.ts'
import type { DriverContext } from '../types.ts'

/** The hatch's tools, the same as any agent's. They are called in this process: a server of its own would start for as long as the rest. */
export interface Tools {
  schedule(task: ScheduledTask): Promise<TaskAnswer>
  update(id: string, changes: Partial<ScheduledTask>): Promise<TaskAnswer>
  change(verb: 'pause' | 'resume' | 'cancel', id: string): Promise<TaskAnswer>
  list(): Promise<readonly ListedTask[]>
  /** the names of all that is offered now */
  offered(): Promise<ReadonlySet<string>>
  saveMemory(key: string, content: string): Promise<void>
  recall(query: string): Promise<readonly Memory[]>
  memories(): Promise<readonly Memory[]>
  forget(key: string): Promise<void>
  /** those that are not done */
  todos(): Promise<readonly Todo[]>
  addTodo(content: string): Promise<Todo>
  completeTodo(id: string): Promise<Todo>
  /** of the days from the first to the last */
  events(first: string, last: string): Promise<readonly CalendarEvent[]>
  /** has a person choose; undefined: they cannot be asked so, or did not choose any of them */
  choose<T>(
    question: string,
    items: readonly T[],
    describe: (item: T) => { label: string; description?: string },
    /** whether somebody who answers in words means it */
    isMeant?: (item: T, words: string) => boolean,
  ): Promise<T | 'none' | undefined>
  close(): Promise<void>
}

interface ScheduledTask {
  prompt: string
  schedule_type: 'cron' | 'interval' | 'once'
  schedule_value: string
  timezone: string
}

const answerSchema = z.object({
  task_id: z.string(),
  status: taskStatusSchema,
  next_run: z.iso.datetime().optional(),
})
export type TaskAnswer = z.infer<typeof answerSchema>

const listSchema = z.object({
  tasks: z.array(
    z.object({
      id: z.string(),
      group: z.string(),
      prompt: z.string(),
      schedule_type: scheduleTypeSchema,
      schedule_value: z.string(),
      timezone: z.string(),
      status: taskStatusSchema,
      next_run: z.iso.datetime().optional(),
    }),
  ),
})
export type ListedTask = z.infer<typeof listSchema>['tasks'][number]

const memorySchema = z.object({ key: z.string(), content: z.string() })
export type Memory = z.infer<typeof memorySchema>
const memoriesSchema = z.object({ memories: z.array(memorySchema) })

const todoSchema = z.object({ id: z.string(), content: z.string(), done: z.boolean() })
export type Todo = z.infer<typeof todoSchema>

const eventSchema = z.object({
  title: z.string().nullish(),
  start: z.string(),
  end: z.string().nullish(),
  all_day: z.boolean().nullish(),
})
export type CalendarEvent = z.infer<typeof eventSchema>
const eventsSchema = z.object({ events: z.array(eventSchema) })
const calendarsSchema = z.object({ calendars: z.array(z.object({ account: z.string(), name: z.string() })) })

const answersSchema = z.object({
  answers: z.array(z.object({ answer: z.string(), option: z.int().optional() })),
})
/** More than that are easier told in words than shown to be clicked. */
const mostOptions = 9
const noneOfThem = 'None of them'

/** The host, or the way to it, said no: its words are for the person who asked. */
export class ToolRefusal extends Error {}

export function connectTools({ start, environment, emit }: DriverContext): Tools {
  const { session, offer } = openSession(
    { ...environment.mcpServer.env, HATCHWAY_EVENTS: start.events },
    { timezone: start.timezone },
  )
  const ending = new AbortController()
  const underWay = new Set<Promise<unknown>>()

  async function call<T>(
    name: string,
    parameters: Record<string, unknown>,
    schema: z.ZodType<T>,
  ): Promise<T> {
    emit({ type: 'step', kind: 'tool_call', name, text: JSON.stringify(parameters) })
    const tool = offer.tools().get(name)
    if (!tool) throw new Error(`There is no tool ${name}`)
    const answer = called(tool, parameters, session, {
      mcpReq: { signal: ending.signal, notify: async () => {} },
    })
    underWay.add(answer)
    const result = await answer.finally(() => underWay.delete(answer))
    const text = result.content.flatMap(block => (block.type === 'text' ? [block.text] : [])).join('\n')
    emit({ type: 'step', kind: 'tool_result', name, text })
    if (result.isError) throw new ToolRefusal(text)
    return schema.parse(result.structuredContent)
  }

  const offered = async () => new Set(offer.tools().keys())

  async function service<T>(
    name: string,
    parameters: Record<string, unknown>,
    schema: z.ZodType<T>,
    what: string,
  ): Promise<T> {
    if (!(await offered()).has(name))
      throw new ToolRefusal(`I cannot ${what} here: the host does not offer it.`)
    return call(name, parameters, schema)
  }

  const remember = 'remember things'
  const keepList = 'keep a list of things to do'
  const lookUp = 'look into a calendar'

  return {
    schedule: task => call('schedule_task', { ...task, context_mode: 'isolated' }, answerSchema),
    update: (id, changes) => call('update_task', { task_id: id, ...changes }, answerSchema),
    change: (verb, id) => call(`${verb}_task`, { task_id: id }, answerSchema),
    list: async () => (await call('list_tasks', {}, listSchema)).tasks,
    offered,
    async saveMemory(key, content) {
      await service('save_memory', { key, content }, z.unknown(), remember)
    },
    recall: async query =>
      (await service('recall_memories', { query, limit: mostOptions }, memoriesSchema, remember)).memories,
    memories: async () => (await service('list_memories', {}, memoriesSchema, remember)).memories,
    async forget(key) {
      await service('forget_memory', { key }, z.unknown(), remember)
    },
    async todos() {
      const { todos } = await service('list_todos', {}, z.object({ todos: z.array(todoSchema) }), keepList)
      return todos.filter(({ done }) => !done)
    },
    addTodo: async content =>
      (await service('add_todo', { content }, z.object({ todo: todoSchema }), keepList)).todo,
    completeTodo: async id =>
      (await service('complete_todo', { todo_id: id }, z.object({ todo: todoSchema }), keepList)).todo,
    async events(first, last) {
      const { calendars } = await service('list_calendars', {}, calendarsSchema, lookUp)
      const days = { start_date: first, end_date: last }
      const events: CalendarEvent[] = []
      for (const { account, name } of calendars) {
        const asked = { ...days, calendar: `${account}/${name}` }
        events.push(...(await service('list_calendar', asked, eventsSchema, lookUp)).events)
      }
      // As text: a day stands before the times of that day.
      return events.sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : 0))
    },
    async choose(question, items, describe, isMeant = () => false) {
      if (items.length > mostOptions || !(await offered()).has('ask_user')) return undefined
      const options = [...items.map(describe), { label: noneOfThem }]
      try {
        const { answers } = await call('ask_user', { questions: [{ question, options }] }, answersSchema)
        const { answer = '', option } = answers[0] ?? {}
        if (option === options.length || /^(?:none|neither|nothing|never ?mind|no)\b/i.test(answer))
          return 'none'
        return option === undefined ? items.find(item => isMeant(item, answer)) : items[option - 1]
      } catch (error) {
        // Nobody has answered; what is to be chosen is then told in words.
        if (error instanceof ToolRefusal) return undefined
        throw error
      }
    },
    async close() {
      // What the host has not begun with is taken back.
      ending.abort()
      await Promise.allSettled(underWay)
    },
  }
}
