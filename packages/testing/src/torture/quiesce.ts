import { setTimeout as sleep } from 'node:timers/promises'
import {
  messagesAnswer,
  type OccurrenceAnswer,
  occurrencesAnswer,
  overviewAnswer,
  tasksAnswer,
} from '../../../host/src/api/answers.ts'
import type { Launched, LaunchOptions } from '../daemon/process.ts'
import type { RequestLog } from './request-log.ts'
import type { Testbed } from './testbed.ts'
import type { Traffic } from './traffic.ts'

/** how long nothing may come to its end, once nobody hurts it any more, before it is said never to */
const patienceMs = 120_000
/** a message that failed is tried again after pauses of 1, 4 and 16 seconds */
const silenceMs = 25_000
/** due later than this is not waited for: the clock was somewhere else when it was asked for */
const soonMs = 90_000

/**
 * Lets a daemon, that nothing is done to, finish everything, and then ends the schedules and the daemon. What is not
 * finished by then is a problem.
 */
export async function quiesce(
  testbed: Testbed,
  { requestLog, traffic, how = {} }: { requestLog: RequestLog; traffic: Traffic; how?: LaunchOptions },
): Promise<string[]> {
  await traffic.settle()
  const daemon = testbed.start(how)
  try {
    await daemon.ready
  } catch (error) {
    return [`the last daemon did not come up: ${error instanceof Error ? error.message : String(error)}`]
  }
  const unfinished = await everythingAnswered(testbed, { requestLog, traffic })
  const left = await schedulesEnded(testbed, daemon)
  await daemon.stop()
  traffic.collect()
  return [...unfinished, ...left]
}

async function everythingAnswered(
  testbed: Testbed,
  { requestLog, traffic }: { requestLog: RequestLog; traffic: Traffic },
): Promise<string[]> {
  const isStuck = createStall()
  let silentSince = performance.now()
  for (;;) {
    await traffic.goOn()
    const open = [
      ...requestLog.said.filter(({ isTaken }) => !isTaken).map(({ word }) => `message ${word} was not taken`),
      ...requestLog.asked
        .filter(({ answer, wish }) => !answer && wish !== 'leave')
        .map(({ kind, word }) => `${kind} ${word} was not answered`),
    ]
    const texts = (await testbed.get('/messages?limit=10000', messagesAnswer))?.map(({ text }) => text)
    const unheard = requestLog.said.filter(({ word }) => !texts?.some(text => text.includes(word)))
    const overview = await testbed.get('/overview', overviewAnswer)
    const isBusy =
      overview === undefined ||
      overview.waiting.messages > 0 ||
      overview.sessions.some(({ kind }) => kind === 'chat')
    const soon = (await tasksOf(testbed)).filter(
      ({ schedule_type, next_run }) =>
        schedule_type === 'once' && next_run !== null && Date.parse(next_run) < Date.now() + soonMs,
    )
    if (isBusy || open.length > 0 || soon.length > 0) silentSince = performance.now()
    // What has no answer in its own words may have been answered by the host: then nothing more comes.
    if (!isBusy && open.length === 0 && soon.length === 0) {
      if (unheard.length === 0 || performance.now() - silentSince > silenceMs) return []
    }
    if (isStuck(`${open.length} ${soon.length} ${unheard.length} ${overview?.waiting.messages}`)) {
      return [...open, ...soon.map(({ id }) => `task ${id} is due and does not run`)].slice(0, 20)
    }
    await sleep(250)
  }
}

const tasksOf = async (testbed: Testbed) =>
  ((await testbed.get('/tasks', tasksAnswer)) ?? []).filter(({ status }) => status === 'active')

/** However slow the machine is: as long as something changes, it is on its way. */
function createStall(): (state: string) => boolean {
  let before = ''
  let since = performance.now()
  return state => {
    if (state !== before) since = performance.now()
    before = state
    return performance.now() - since > patienceMs
  }
}

async function schedulesEnded(testbed: Testbed, daemon: Launched): Promise<string[]> {
  const isStuck = createStall()
  for (;;) {
    const open = await tasksOf(testbed)
    for (const { id } of open) await testbed.ask('POST', `/tasks/${id}/cancel`)
    const all = (await testbed.get('/tasks?all=1', tasksAnswer)) ?? []
    const running: string[] = []
    for (const { id } of all) {
      const history = (await testbed.get(`/tasks/${id}/history?limit=10`, occurrencesAnswer)) ?? []
      running.push(...history.filter(isOpen).map(run => `${run.id} is ${run.status}`))
    }
    const sessions = (await testbed.get('/overview', overviewAnswer))?.sessions.length
    if (open.length === 0 && running.length === 0 && sessions === 0) return []
    if (isStuck(running.join())) return [...running, `${sessions} sessions`, daemon.output().slice(-500)]
    await sleep(250)
  }
}

const isOpen = ({ status }: OccurrenceAnswer) => status === 'claimed' || status === 'running'
