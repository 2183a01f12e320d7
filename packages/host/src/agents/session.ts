import { StringDecoder } from 'node:string_decoder'
import type { Group, RunEvent, RunStart } from '@hatchway/protocol'
import type { AgentStore, IncomingRow, RunRow } from '../store/agent-types.ts'
import type { Framing } from './framing/types.ts'
import { type InputBox, inputId } from './input-box.ts'
import type { SandboxExit, SandboxProcess } from './types.ts'

/**
 * One run of an agent, from the start of its sandbox to the end of it:
 *
 *   working   it was given something that it has not answered yet
 *   idle      everything is answered; a follow-up is welcome until the idle time is over
 *   closing   it was asked to finish; what comes now is for the next run (lesson 20)
 *   ended     the sandbox is gone
 *
 * What it was given counts as used only in the commit that stores the answer. Whatever it leaves unanswered, however it
 * ends, goes to the next run.
 */
export type SessionState = 'working' | 'idle' | 'closing' | 'ended'

export interface SessionEnd {
  /** undefined: it ended as it should */
  error: string | undefined
  /** what it said last */
  result: string | null
  /** whether it answered anything at all */
  answered: boolean
  woken: boolean
}

export interface Session {
  runId: string
  group: string
  kind: RunStart['kind']
  state(): SessionState
  /** hands a follow-up to the running agent; false: not this one any more */
  feed(rows: readonly IncomingRow[]): boolean
  /** after what it is doing now */
  close(): void
  /** now; what it has not answered waits for the next host */
  kill(reason: string): void
  ended: Promise<SessionEnd>
}

export interface SessionOptions {
  start: RunStart
  group: Group
  /** rows behind the first inputs; none for a task */
  rows: readonly IncomingRow[]
  /** whether the agent's own session is the group's, to be resumed */
  keepSession: boolean
  framing: Framing
  launch(): Promise<SandboxProcess>
  input: InputBox
  store: AgentStore
  run: RunRow
  /** stores what the agent says, in the commit that ends the turn */
  say(text: string): Parameters<AgentStore['finishTurn']>[0]['message']
  changed(state: SessionState): void
  /** what people are told if this run fails, too; undefined: it is tried again */
  giveUp: ((error: string) => string) | undefined
  limits: { idleMs: number; runMs: number; closeMs: number }
  now(): number
}

const stepLimit = 5000
const textLimit = 50_000
const stderrKept = 4000
const resultKept = 2000

export function startSession(options: SessionOptions): Session {
  const { start, group, framing, input, store, limits, now, run } = options
  const runId = start.run_id
  /** given and not answered yet, by the name the agent knows it under */
  const open = new Map<string, IncomingRow>(options.rows.map(row => [inputId(row.id), row]))
  const used = new Set<string>(framing.ownRunner ? [] : open.keys())
  let state: SessionState = 'working'
  let process: SandboxProcess | undefined
  let timer: NodeJS.Timeout | undefined
  let stepCount = 0
  let stderr = ''
  let killedBecause: string | undefined
  let toldError: string | undefined
  let result: string | null = null
  let answered = false
  let woken = true
  let stopping = false
  let sessionId = start.session_id

  const step = (kind: string, text: string, name: string | null = null) => {
    if (stepCount++ > stepLimit) return
    const note = stepCount > stepLimit ? 'This run says too much; the rest of it is not written down.' : text
    store.addSteps([{ runId, at: now(), kind, name, text: note.slice(0, textLimit) }])
  }

  const enter = (next: SessionState) => {
    clearTimeout(timer)
    state = next
    if (next === 'working') {
      timer = setTimeout(
        () => kill(`it worked on one turn for more than ${limits.runMs / 1000} s`),
        limits.runMs,
      )
    }
    if (next === 'idle') timer = setTimeout(close, limits.idleMs)
    if (next === 'closing') {
      timer = setTimeout(
        () => kill(`it did not finish within ${limits.closeMs / 1000} s of being asked to`),
        limits.closeMs,
      )
    }
    options.changed(next)
  }

  const close = () => {
    if (state !== 'idle' && state !== 'working') return
    input.close()
    enter('closing')
  }

  const kill = (reason: string) => {
    if (state === 'ended') return
    killedBecause ??= reason
    void process?.kill()
  }
  const stop = (reason: string) => {
    stopping = true
    kill(reason)
  }

  const finishTurn = (text: string | null) => {
    // A stranger's container says nothing of what it used: what it took out of its inbox, it used.
    if (!framing.ownRunner) for (const id of input.taken()) used.add(id)
    const ids = [...used].filter(id => open.has(id))
    const said = text === null || text.trim() === '' ? undefined : text
    store.finishTurn({
      runId,
      group: group.folder,
      usedIds: ids.flatMap(id => open.get(id)?.id ?? []),
      sessionId,
      keepSession: options.keepSession,
      message: said === undefined ? undefined : options.say(said),
    })
    for (const id of ids) open.delete(id)
    used.clear()
    answered = true
    if (said !== undefined) {
      result = said.slice(0, resultKept)
      step('result', said)
    }
  }

  const onEvent = (event: RunEvent) => {
    switch (event.type) {
      case 'ready':
      case 'heartbeat':
        return
      case 'used':
        for (const id of event.inputs) if (open.has(id)) used.add(id)
        if (state === 'idle') enter('working')
        return
      case 'script':
        woken = event.wake
        if (event.error !== undefined) toldError = event.error
        return step('script', event.error ?? (event.wake ? 'The agent is woken.' : 'The agent is not woken.'))
      case 'step':
        return step(event.kind, event.text, event.name ?? null)
      case 'result':
        sessionId = event.session_id ?? sessionId
        finishTurn(event.text)
        if (state !== 'working') return
        if (open.size > 0) return enter('working')
        enter('idle')
        if (start.kind === 'task') close()
        return
      case 'error':
        sessionId = event.session_id ?? sessionId
        toldError = event.message.slice(0, textLimit)
        step('error', toldError)
        // What it could not answer is for a fresh run.
        return close()
    }
  }

  const reader = framing.createReader()
  const follow = (sandbox: SandboxProcess) => {
    const decoder = new StringDecoder('utf8')
    sandbox.stdout.on('data', (chunk: Buffer) => {
      for (const event of reader.read(decoder.write(chunk))) onEvent(event)
    })
    sandbox.stderr.on('data', (chunk: Buffer) => {
      stderr = (stderr + chunk.toString()).slice(-stderrKept)
    })
    // It may be gone before it has read everything; its exit says so.
    sandbox.stdin.on('error', () => {})
    sandbox.stdin.end(framing.stdin(start))
  }

  const explain = ({ code, signal, problem }: SandboxExit): string | undefined => {
    if (killedBecause !== undefined) return `The agent was ended: ${killedBecause}.`
    if (problem !== undefined) return problem
    if (code === 0 && !toldError)
      return open.size > 0 && !answered ? 'The agent ended without an answer.' : undefined
    return toldError ?? `The agent ended by itself (${signal ?? `code ${code}`}).`
  }

  const work = async (): Promise<SessionEnd> => {
    input.clear()
    for (const { text } of start.inputs) step('input', text)
    let exit: SandboxExit
    try {
      for (const file of framing.files(start)) input.place(file)
      process = await options.launch()
      follow(process)
      if (killedBecause !== undefined) await process.kill()
      exit = await process.exited
    } catch (error) {
      exit = { code: null, signal: null, problem: error instanceof Error ? error.message : String(error) }
    }
    enter('ended')
    const error = explain(exit)
    if (stderr.trim() !== '') step('log', stderr.trim())
    if (error !== undefined) step('error', error)
    if (error !== undefined && !answered && open.size > 0 && !stopping) {
      const words = options.giveUp?.(error)
      if (words !== undefined) {
        for (const id of open.keys()) used.add(id)
        finishTurn(words)
      }
    }
    store.giveBack(runId)
    input.clear()
    store.updateRun(runId, {
      sessionId,
      status: error === undefined ? 'done' : 'failed',
      endedAt: now(),
      result,
      error: error ?? null,
    })
    return { error, result, answered, woken }
  }

  store.insertRun(run)
  if (options.rows.length > 0) {
    store.give(
      options.rows.map(({ id }) => id),
      runId,
    )
  }
  enter('working')
  const ended = work()

  return {
    runId,
    group: group.folder,
    kind: start.kind,
    state: () => state,
    feed(rows) {
      if (state !== 'working' && state !== 'idle') return false
      if (start.kind === 'task') return false
      store.give(
        rows.map(({ id }) => id),
        runId,
      )
      for (const row of rows) {
        open.set(inputId(row.id), row)
        step('input', row.text)
        input.post(row)
      }
      if (state === 'idle') enter('working')
      return true
    },
    close,
    kill: stop,
    ended,
  }
}
