import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { inspectStore } from '../../../host/src/store/inspect.ts'
import { openStore } from '../../../host/src/store/sqlite.ts'
import type { IncomingRow, OccurrenceRow, RunRow, Store } from '../../../host/src/store/types.ts'
import { findLeftovers } from './leftovers.ts'
import { type Asked, isHeld, isTask, type Kind, type RequestLog } from './request-log.ts'
import type { Testbed } from './testbed.ts'
import { wordIn } from './traffic.ts'

/** One thing that has to hold, how much there was of it, and where it did not. */
export interface Property {
  name: string
  count: string
  problems: string[]
}

export interface AuditOptions {
  testbed: Testbed
  requestLog: RequestLog
  /** the clock was set: what waited may have expired, and the schedule's grid may have moved */
  wasSet: boolean
}

/** What became of everything in the request log, once the last daemon has ended. */
export async function audit(options: AuditOptions): Promise<Property[]> {
  const { testbed } = options
  const facts = await inspectStore(testbed.layout.database)
  const store = openStore({ path: testbed.layout.database, durability: 'process', prepare: false })
  try {
    return [
      messagesOfPeople(options, store),
      messagesOfAgents(options, store),
      askedTwice(options),
      askedOnce(options),
      todosAndMemories(options, store),
      approvals(options, store),
      scheduledRuns(options, store),
      hostJobs(options, store),
      {
        name: 'database and audit log whole',
        count: facts.audit.message,
        problems: [...facts.damage, ...(facts.audit.ok ? [] : [facts.audit.message])],
      },
      {
        name: 'processes, mounts, control groups, files left',
        count: 'none',
        problems: findLeftovers(testbed, facts.installation ?? undefined),
      },
    ]
  } finally {
    store.close()
  }
}

const lines = (path: string): string[] =>
  existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []
const countIn = (all: readonly string[], one: string) => all.filter(other => other === one).length

const gaveUp = 'I could not answer that.'

function messagesOfPeople({ requestLog }: AuditOptions, store: Store): Property {
  const problems: string[] = []
  const texts = store.messages({}).filter(({ text }) => !text.startsWith('own '))
  let byHost = 0
  const runs = new Map<string, RunRow>(store.agents.runs({}).map(run => [run.id, run]))
  for (const { word, folder } of requestLog.said) {
    const rows = store.agents.incoming({ group: folder }).filter(({ text }) => text.includes(word))
    const [row] = rows
    if (!row) problems.push(`${word} to ${folder} was lost`)
    else if (rows.length > 1) problems.push(`${word} to ${folder} was taken ${rows.length} times`)
    else if (row.status !== 'used') problems.push(`${word} to ${folder} is still ${row.status}`)
    const answers = texts.filter(({ group, text }) => group === folder && text.includes(word))
    if (answers.length > 1)
      problems.push(
        `${word} to ${folder} was answered with ${answers.map(({ text }) => `“${text}”`).join(', ')}`,
      )
    if (answers.length > 0 || !row) continue
    if (explained(row, runs)) byHost++
    else {
      const { result, error } = runs.get(row.runId ?? '') ?? {}
      problems.push(`${word} to ${folder} was not answered; its run said “${result}” and ended with ${error}`)
    }
  }
  const unsent = texts.filter(({ status }) => status !== 'sent')
  problems.push(...unsent.map(({ text, status }) => `“${text.slice(0, 40)}” is ${status}`))
  const count = `${requestLog.said.length} said, ${byHost} of them answered with a reason why not`
  return { name: 'messages of people answered once', count, problems }
}

/** The agent said why it could not, or the host did after three runs. */
const explained = ({ runId }: IncomingRow, runs: ReadonlyMap<string, RunRow>): boolean => {
  const run = runs.get(runId ?? '')
  return run?.result?.startsWith(gaveUp) === true || run?.driver === 'concierge'
}

function messagesOfAgents({ requestLog }: AuditOptions, store: Store): Property {
  const problems: string[] = []
  const texts = store.messages({}).map(({ text }) => text)
  const expectOnce = (text: string, isCertain: boolean) => {
    const times = countIn(texts, text)
    if (times > 1) problems.push(`“${text}” was sent ${times} times`)
    if (times === 0 && isCertain) problems.push(`“${text}” was lost`)
  }
  const own = requestLog.said.filter(({ folder }) => folder === 'bob')
  // One that the host answered may have failed before it was sent.
  for (const { word } of own)
    expectOnce(
      `own ${word}`,
      texts.some(text => isAnswer(text, word)),
    )
  const sent = requestLog.asked.filter(({ kind }) => kind === 'message' || kind === 'file')
  for (const { word, answer, kind } of sent) {
    expectOnce(word, answer?.ok === true)
    if (answer?.ok === false && countIn(texts, word) > 0) problems.push(`${word} was refused, and sent`)
    if (answer?.ok === false && kind === 'message') problems.push(`${word} was refused: ${answer.code}`)
  }
  return { name: 'messages of agents sent once', count: `${own.length + sent.length} sent`, problems }
}
const isAnswer = (text: string, word: string) => text.startsWith('heard') && text.includes(word)

const ofKind = ({ asked }: RequestLog, ...kinds: Kind[]): Asked[] =>
  asked.filter(({ kind }) => kinds.includes(kind))

function askedTwice({ requestLog, testbed, wasSet }: AuditOptions): Property {
  const done = lines(testbed.effects)
  const problems: string[] = [...requestLog.contradictions]
  const all = ofKind(requestLog, 'note_again')
  for (const { word, answer } of all) {
    const times = countIn(done, `note_again ${word}`)
    if (answer?.ok && times === 0) problems.push(`${word} was answered and never done`)
    if (answer && !answer.ok && !(wasSet && answer.code === 'expired'))
      problems.push(`${word} was answered with ${answer.code}`)
  }
  return { name: 'repeatable requests answered once', count: `${all.length} asked`, problems }
}

function askedOnce({ requestLog, testbed, wasSet }: AuditOptions): Property {
  const done = lines(testbed.effects)
  const problems: string[] = []
  const all = ofKind(requestLog, 'note_once')
  for (const { word, answer } of all) {
    const times = countIn(done, `note_once ${word}`)
    if (times > 1) problems.push(`${word} was done ${times} times`)
    if (answer?.ok && times === 0) problems.push(`${word} was answered and never done`)
    if (answer && !answer.ok && answer.code !== 'interrupted' && !(wasSet && answer.code === 'expired'))
      problems.push(`${word} was answered with ${answer.code}`)
  }
  const cut = all.filter(({ answer }) => answer?.code === 'interrupted').length
  const count = `${all.length} asked, ${cut} of them interrupted`
  return { name: 'other requests done at most once', count, problems }
}

function todosAndMemories({ requestLog, testbed, wasSet }: AuditOptions, store: Store): Property {
  const problems: string[] = []
  const todos = store.todos('desk').map(({ content }) => content)
  for (const { word, answer } of ofKind(requestLog, 'todo')) {
    const times = countIn(todos, word)
    if (answer?.ok !== true) problems.push(`todo ${word} was answered with ${answer?.code ?? 'nothing'}`)
    else if (times !== 1) problems.push(`todo ${word} is there ${times} times`)
  }
  const memories = savedIn(join(testbed.layout.state, 'memory', 'desk.db'))
  for (const { word, answer } of ofKind(requestLog, 'memory')) {
    const times = countIn(memories, word)
    if (answer?.ok && times !== 1) problems.push(`memory ${word} is there ${times} times`)
    // It says why, and can be asked again.
    if (answer && !answer.ok && answer.code !== 'service_failed' && !(wasSet && answer.code === 'expired'))
      problems.push(`memory ${word} was answered with ${answer.code}`)
  }
  const count = `${todos.length} todos, ${memories.length} memories`
  return { name: 'todos and memories changed once', count, problems }
}

function savedIn(path: string): string[] {
  if (!existsSync(path)) return []
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    // A file that was begun while there was no room has nothing in it, and is finished by the next who saves something.
    if (!database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'memories'").get()) return []
    return database
      .prepare('SELECT key FROM memories')
      .all()
      .map(row => String(row.key))
  } finally {
    database.close()
  }
}

function approvals({ requestLog, testbed, wasSet }: AuditOptions, store: Store): Property {
  const problems: string[] = []
  const done = lines(testbed.effects)
  const rows = new Map(store.approvals.list({ limit: 100_000 }).map(row => [wordIn(row.action), row]))
  const tasks = store.tasks({})
  const held = requestLog.asked.filter(isHeld)
  for (const { word, kind, wish, answer } of held) {
    const status = rows.get(word)?.status ?? 'missing'
    const isScheduled = kind === 'job' || isTask({ kind })
    const times = isScheduled
      ? tasks.filter(({ id, job }) => (job?.name ?? id) === word).length
      : countIn(done, `${kind} ${word}`)
    const expected = { allow: 'allowed', deny: 'denied', leave: 'open' }[wish ?? 'leave']
    // A clock that jumps while the daemon is down can end a request before there is a card for it.
    const isExpired = wasSet && (status === 'expired' || (status === 'missing' && answer?.code === 'expired'))
    const told = `${kind} ${word} is ${status}, was done ${times} times and answered with ${answer?.ok ? 'yes' : (answer?.code ?? 'nothing')}`
    if (status !== expected && !isExpired) problems.push(`${told}; a person said ${wish}`)
    else if (status !== 'allowed' && times > 0) problems.push(told)
    else if (status === 'denied' && answer?.code !== 'denied') problems.push(told)
    else if (status === 'open' && answer) problems.push(told)
    else if (isExpired && answer?.code !== 'expired') problems.push(told)
    else if (status === 'allowed') {
      const isCut = kind === 'publish_once' && answer?.code === 'interrupted'
      // The person took longer than it had time, and whoever asked is told.
      const isLate =
        (wasSet && answer?.code === 'expired') || (kind === 'once' && answer?.code === 'bad_schedule')
      if (!answer?.ok && !isCut && !isLate) problems.push(told)
      if (answer?.ok ? times === 0 : isScheduled && times > 0) problems.push(told)
      if (times > 1 && kind !== 'publish_again') problems.push(told)
    }
  }
  const by = (status: string) => held.filter(({ word }) => rows.get(word)?.status === status).length
  const count = `${by('allowed')} allowed, ${by('denied')} denied, ${by('open')} open, ${by('expired')} expired`
  return { name: 'what people decided, and nothing else', count, problems }
}

/** Everything that ran, or was to run, of one task. */
function checkSchedule(
  word: string,
  occurrences: readonly OccurrenceRow[],
  { interval, wasSet }: { interval: number | undefined; wasSet: boolean },
): string[] {
  const problems: string[] = []
  const open = occurrences.filter(({ status }) => status === 'claimed' || status === 'running')
  if (open.length > 0) problems.push(`${word} has ${open.length} runs that never ended`)
  if (interval === undefined || wasSet) return problems
  const inOrder = occurrences.filter(({ manual }) => !manual).toSorted((a, b) => a.dueAt - b.dueAt)
  for (const [i, { dueAt, claimedAt }] of inOrder.entries()) {
    const next = inOrder[i + 1]
    if (!next) break
    if ((next.dueAt - dueAt) % interval !== 0) problems.push(`${word} left its grid at ${next.dueAt}`)
    // What is left out was over when the one before it was claimed: the host was down, or busy.
    if (next.dueAt - interval > Math.max(dueAt, claimedAt))
      problems.push(`${word} was due at ${next.dueAt - interval} and forgotten`)
  }
  return problems
}

function scheduledRuns({ requestLog, testbed, wasSet }: AuditOptions, store: Store): Property {
  const problems: string[] = []
  const ticks = lines(join(testbed.layout.groups, 'clock', 'ticks'))
  const heard = store.messages({ group: 'clock' }).map(({ text }) => text)
  let total = 0
  let late = 0
  for (const asked of requestLog.asked.filter(isTask)) {
    const { word, kind, answer } = asked
    const task = store.agents.task(word)
    // Its time had passed when it was read or allowed: nobody was there to do so, and whoever asked is told.
    if (kind === 'once' && answer?.code === 'bad_schedule' && !task) {
      late++
      continue
    }
    // What has no task as a person did not allow it is looked at with all that people decide.
    if (isHeld(asked) && !task) continue
    if (!task || answer?.ok !== true) {
      problems.push(`${kind} ${word} was answered with ${answer?.code ?? 'nothing'} and is ${task?.status}`)
      continue
    }
    const occurrences = store.agents.occurrences({ taskId: word })
    total += occurrences.length
    const begun = occurrences.filter(({ runId }) => runId !== null).length
    const done = occurrences.filter(({ status }) => status === 'done').length
    const times = countIn(ticks, word)
    if (times > begun || times < done)
      problems.push(`${word} ran ${times} times, and began ${begun} times, of which ${done} are done`)
    const answers = countIn(heard, `heard ${word}`)
    if (answers > begun || answers < done) problems.push(`${word} was said ${answers} times, done ${done}`)
    const interval = kind === 'interval' ? Number(task.schedule_value) : kind === 'cron' ? 60_000 : undefined
    problems.push(...checkSchedule(word, occurrences, { interval, wasSet }))
    if (kind !== 'once') continue
    if (occurrences.length > 1)
      problems.push(`${word} was to run once and was due ${occurrences.length} times`)
    const isFinal = task.status === 'completed' || (wasSet && task.status === 'cancelled')
    if (!isFinal) problems.push(`${word} was to run once and is ${task.status}`)
    if (task.status === 'completed' && occurrences.length === 0) problems.push(`${word} never ran`)
  }
  const count = `${total} due, ${late} asked or allowed too late`
  return { name: 'scheduled runs at most once, none forgotten', count, problems }
}

function hostJobs({ requestLog, testbed, wasSet }: AuditOptions, store: Store): Property {
  const problems: string[] = []
  let total = 0
  for (const { word } of ofKind(requestLog, 'job')) {
    const task = store.tasks({}).find(({ job }) => job?.name === word)
    const marks = lines(join(testbed.work, word))
    if (!task) {
      if (marks.length > 0) problems.push(`${word} ran ${marks.length} times and was never scheduled`)
      continue
    }
    const occurrences = store.agents.occurrences({ taskId: task.id })
    total += occurrences.length
    const ran = marks.map(mark => mark.split('/').at(-1) ?? '')
    for (const run of new Set(ran)) {
      const times = countIn(ran, run)
      if (times > 1) problems.push(`run ${run} of ${word} happened ${times} times`)
      if (!occurrences.some(({ runId }) => runId === run)) problems.push(`run ${run} of ${word} is not known`)
    }
    for (const { runId, status } of occurrences) {
      if (status === 'done' && !ran.includes(runId ?? '')) problems.push(`run ${runId} of ${word} never ran`)
    }
    const interval = Number(task.schedule_value)
    problems.push(...checkSchedule(word, occurrences, { interval, wasSet }))
  }
  return { name: 'commands on the host at most once', count: `${total} due`, problems }
}
