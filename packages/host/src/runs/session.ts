import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Group, RunEvent, RunStart } from '@hatchway/protocol'
import type { Logger } from 'pino'
import { isStorageFailure } from '../base/storage-failure.ts'
import type { SandboxExit, SandboxProcess } from '../sandboxes/types.ts'
import type { AgentStore, IncomingRow, RunRow } from '../store/agent-types.ts'
import { textWithFiles } from '../store/attachment-text.ts'
import { createOutletReader } from './container-protocols/outlet.ts'
import type { ContainerProtocol } from './container-protocols/types.ts'
import { type InputBox, inputId } from './input-box.ts'
import { type Listener, listenTo, retryMs } from './listen.ts'
import { createTranscript } from './transcript.ts'

/**
 * One run of an agent, from the start of its sandbox to the end of it:
 *
 *   working   it was given something that it has not answered yet
 *   idle      everything is answered; a follow-up is welcome until the idle time is over
 *   stopping  a person stopped the turn. What it was given counts as answered by that, and what it still says of it is
 *             not passed on. It is idle once it has ended the turn; one that cannot be asked to is ended
 *   closing   it was asked to finish; what comes now is for the next run
 *             A turn that takes too long is ended with the sandbox, or, where the agent can be interrupted, by itself.
 *   ended     the sandbox is gone
 *
 * What it was given counts as used only in the commit that stores the answer. Whatever it leaves unanswered, however it
 * ends, goes to the next run. Nothing that an agent does, and no failure of the store or the disk, may throw out of an
 * event or a timer: that would end the host.
 */
export type SessionState = 'working' | 'idle' | 'stopping' | 'closing' | 'ended'

export interface SessionEnd {
  /** undefined: it ended as it should */
  error: string | undefined
  /** what it said last */
  result: string | null
  /** whether it answered anything that it was given */
  answered: boolean
  woken: boolean
  /** the disk or the database did not let it begin: it is begun again for as long as that lasts */
  hadNoRoom: boolean
}

export interface Session {
  runId: string
  group: string
  kind: RunStart['kind']
  state(): SessionState
  /** how many follow-ups it takes at the moment */
  room(): number
  /** hands follow-ups to the running agent. Throws, with nothing done, if the store fails. */
  feed(rows: readonly IncomingRow[]): void
  /** whether nobody but a deploy has called it so far */
  isByDeploy(): boolean
  /** what it says from now on is not gone on with */
  forget(): void
  /** it counts as done, however it ends */
  finish(): void
  /**
   * Ends the turn it is at; people are told so at once. False: there is no turn. Throws, with nothing done, if the store
   * fails.
   */
  stopTurn(by: string): boolean
  /** after what it is doing now */
  close(): void
  /** now; what it has not answered waits for the next host */
  kill(reason: string): void
  /** never rejects */
  ended: Promise<SessionEnd>
}

export interface SessionOptions {
  start: RunStart
  group: Group
  /** rows behind the first inputs; none for a task */
  rows: readonly IncomingRow[]
  /** whether the agent's own session is the group's, to be resumed */
  keepSession: boolean
  protocol: ContainerProtocol
  launch(): Promise<SandboxProcess>
  input: InputBox
  store: AgentStore
  run: RunRow
  /** what the agent says, as it is stored in the commit that ends the turn; undefined: there is nobody to say it to */
  say(text: string): Parameters<AgentStore['finishTurn']>[0]['message']
  /** it is stored */
  said(): void
  changed(state: SessionState): void
  /** it had to be ended to stop its turn: its next run is to be told */
  cutOff(by: string): void
  /** nobody waits for what the turn had put to people: said when it is told to stop, and again when it has */
  turnStopped?(): void
  /** whether what it has asked for waits for a person */
  waitsForPeople?(): boolean
  /** what its agent is to hear with the next follow-up; asked once for each */
  notices?(): readonly string[]
  /** there may be room for follow-ups that there was not before */
  hasRoom(): void
  /** resolves once everything is decided that it has put into its directories */
  decided?(): Promise<void>
  /** what people are told if this run fails, too; undefined: it is tried again */
  giveUp(error: string): string | undefined
  limits: { idleMs: number; runMs: number; closeMs: number }
  log: Pick<Logger, 'warn' | 'error'>
  now(): number
}

/** given and not answered, at most: what is more waits in the store and not in our memory */
export const inputsAtOnce = 50

const errorLimit = 2000
const resultKept = 2000
const messageLimit = 1_000_000
const sessionIdLimit = 256
/** what it may print in one turn: more than any agent has to say, and little enough to read */
const outputLimit = 64_000_000
/** after so much of it the transcript is written, so that it is not in our memory */
const writtenAfter = 1_000_000
/** turns that nobody asked for, one after the other */
const unaskedLimit = 20
/** messages in the middle of one turn */
const betweenLimit = 100
const silence = 'The agent ended without an answer.'
/** between two looks whether a person has decided, once a turn takes long */
const waitingLookMs = 1000
/** how long an exit may take once nothing runs any more */
const lostMs = 10_000

export function startSession(options: SessionOptions): Session {
  const { start, group, protocol, input, store, limits, now, run } = options
  const runId = start.run_id
  const isTask = start.kind === 'task'
  const about = { group: group.folder, run: runId }
  /** given and not answered yet, by the name the agent knows it under */
  const open = new Map<string, IncomingRow>(options.rows.map(row => [inputId(row.id), row]))
  const used = new Set<string>(protocol.ownRunner ? [] : open.keys())
  const lost = Promise.withResolvers<SandboxExit>()
  const halted = Promise.withResolvers<void>()
  /** given while it was at something else */
  const asides = new Set<string>()
  /** those of them that it took before it last spoke: that may have been about them, or not */
  const doubtful = new Set<string>()
  let state: SessionState = 'working'
  let announced: SessionState | undefined
  let sandbox: SandboxProcess | undefined
  let timer: NodeJS.Timeout | undefined
  /** its inbox is its own: what earlier runs left in it is gone */
  let ready = false
  /** why follow-ups can no longer be given to it, if so */
  let unreachable: string | undefined
  /** the sandbox has ended; what it said last may still have to be read */
  let gone = false
  let listener: Listener | undefined
  let isLost = false
  let lostTimer: NodeJS.Timeout | undefined
  let printed = 0
  let unasked = 0
  let between = 0
  let killedBecause: string | undefined
  let toldError: string | undefined
  let result: string | null = null
  let spoke = false
  let answered = false
  let woken = true
  /** the host stops */
  let stopping = false
  let wasIdle = false
  let hadNoRoom = false
  let isFinished = false
  let isForgotten = false
  /** takes back the wish that it ends its turn; undefined: it was not asked to */
  let interruption: (() => void) | undefined
  /** who stopped the turn, if the run ended by that */
  let stoppedBy: string | undefined
  let keepsSession = options.keepSession
  let isByDeploy = options.rows.length > 0 && options.rows.every(isDeployed)
  let sessionId = start.session_id

  const transcript = createTranscript({
    runId,
    store,
    now,
    failed: error => options.log.error({ err: error, ...about }, 'a transcript could not be written'),
  })

  const alarm = (ms: number, ring: () => void) => {
    timer = setTimeout(ring, ms)
  }
  const enter = (next: SessionState) => {
    clearTimeout(timer)
    state = next
    if (!gone && next === 'working') {
      alarm(limits.runMs, tooLong)
    }
    if (!gone && next === 'idle') alarm(limits.idleMs, close)
    if (!gone && next === 'stopping') alarm(limits.closeMs, () => cutOff('it did not stop when asked to'))
    if (!gone && next === 'closing') {
      // Where the end of its turn is not known for certain, it may still be in the middle of one.
      const patience = protocol.mayGoOn ? Math.max(limits.runMs, limits.closeMs) : limits.closeMs
      alarm(patience, () => kill(`it did not finish within ${patience / 1000} s of being asked to`))
    }
    if (announced === next) return
    announced = next
    options.changed(next)
  }

  const close = () => {
    if (gone || (state !== 'idle' && state !== 'working')) return
    enter('closing')
    try {
      input.close()
    } catch (error) {
      // The disk is full, or the agent has put a directory in that place. It has nothing to do that could be lost.
      options.log.warn({ err: error, ...about }, 'a session could not be asked to finish and is ended')
      kill(`it could not be asked to finish (${codeOf(error)})`)
    }
  }

  /** The time that a person takes is not the agent's: its turn then has all of its own time again. */
  const tooLong = () => {
    if (!options.waitsForPeople?.()) return interrupt()
    const look = () =>
      options.waitsForPeople?.() ? alarm(waitingLookMs, look) : alarm(limits.runMs, tooLong)
    look()
  }

  const interrupt = () => {
    const reason = `it worked on one turn for more than ${limits.runMs / 1000} s`
    try {
      interruption = input.interrupt()
    } catch (error) {
      options.log.warn({ err: error, ...about }, 'a session could not be interrupted and is ended')
    }
    if (!interruption) return kill(reason)
    transcript.add('notice', `It is interrupted: ${reason}.`)
    alarm(limits.closeMs, () => kill(reason))
  }
  /** A wish that comes too late would end the next turn. */
  const calm = (): boolean => {
    if (!interruption) return false
    try {
      interruption()
    } catch (error) {
      options.log.warn({ err: error, ...about }, 'an interruption could not be taken back')
    }
    interruption = undefined
    return true
  }

  const stopTurn = (by: string): boolean => {
    if (gone || state !== 'working' || killedBecause !== undefined) return false
    const named = [...used]
    for (const id of open.keys()) used.add(id)
    try {
      finishTurn(`Stopped by ${by}.`)
    } catch (error) {
      used.clear()
      for (const id of named) used.add(id)
      throw error
    }
    transcript.add('notice', `${by} stopped the turn.`)
    stoppedBy = by
    options.turnStopped?.()
    enter('stopping')
    try {
      interruption = input.stop()
    } catch (error) {
      options.log.warn({ err: error, ...about }, 'a session could not be asked to stop and is ended')
    }
    if (!interruption) cutOff('it cannot be asked to stop')
    return true
  }
  const cutOff = (reason: string) => {
    if (stoppedBy === undefined || gone || killedBecause !== undefined) return
    options.cutOff(stoppedBy)
    kill(reason)
  }
  /** The turn that was stopped is over. */
  const onStopped = () => {
    calm()
    // A task is nothing but its one turn, so it stays stopped.
    if (!isTask) stoppedBy = undefined
    enter('idle')
    // What it had asked for in its last moment may only be read now.
    options.turnStopped?.()
    if (isTask || unreachable !== undefined) close()
    else options.hasRoom()
  }

  const kill = (reason: string) => {
    if (gone || killedBecause !== undefined) return
    killedBecause = reason
    if (sandbox) void end(sandbox)
  }
  const end = async (started: SandboxProcess) => {
    try {
      await started.kill()
    } catch (error) {
      options.log.error({ err: error, ...about }, 'a sandbox could not be ended')
    }
    if (gone) return
    lostTimer = setTimeout(() => {
      isLost = true
      lost.resolve({ code: null, signal: null })
    }, lostMs)
  }
  const stop = (reason: string) => {
    stopping = true
    wasIdle = state === 'idle' || (state === 'closing' && open.size === 0)
    halted.resolve()
    kill(reason)
  }

  /**
   * A stranger's container says nothing of what it used: what it took out of its inbox before it spoke, it used. But
   * what was given while it was at something else may be kept for its next turn, so that is used only when it speaks
   * once more; nothing to say (null) means that nothing is left.
   */
  const guess = (text: string | null, saidAt: number | undefined) => {
    if (protocol.namesUsed) return { sure: [], unsure: [] }
    const settled = [...doubtful].slice(0, text === null ? doubtful.size : 1)
    const taken = input.taken(saidAt).filter(id => open.has(id) && !settled.includes(id))
    return {
      sure: [...settled, ...taken.filter(id => !asides.has(id))],
      unsure: taken.filter(id => asides.has(id)),
    }
  }

  /** how many of the inputs it answered */
  const finishTurn = (text: string | null, saidAt?: number): number => {
    const { sure, unsure } = guess(text, saidAt)
    const ids = [...used, ...sure].filter(id => open.has(id))
    const said = text === null || text.trim() === '' ? undefined : text.slice(0, messageLimit).toWellFormed()
    const message = said === undefined ? undefined : options.say(said)
    const isOurs = store.finishTurn({
      runId,
      group: group.folder,
      usedIds: ids.flatMap(id => open.get(id)?.id ?? []),
      sessionId,
      keepSession: keepsSession,
      message,
    })
    for (const id of unsure) doubtful.add(id)
    for (const id of ids) {
      open.delete(id)
      doubtful.delete(id)
    }
    used.clear()
    if (!isOurs) return 0
    spoke = true
    if (ids.length > 0) answered = true
    if (said !== undefined) {
      result = said.slice(0, resultKept)
      transcript.keep('result', said)
      transcript.flush()
    }
    if (message) options.said()
    return ids.length
  }

  const onResult = (text: string | null, saidAt: number | undefined) => {
    const isFirst = !spoke
    const wasInterrupted = calm() && (text === null || text.trim() === '')
    const words = `I was interrupted, as that took more than ${limits.runMs / 1000} s.`
    const answers = finishTurn(wasInterrupted ? words : text, saidAt)
    if (answers > 0 || (isTask && isFirst)) {
      unasked = 0
      between = 0
      printed = 0
      options.hasRoom()
    } else if (++unasked > unaskedLimit) kill('it went on talking without being asked')
    if (state !== 'working') return
    if (open.size > doubtful.size) {
      // The next turn has its own time; saying something without an answer gains none.
      if (answers > 0) enter('working')
      return
    }
    enter('idle')
    if ((isTask && !protocol.mayGoOn) || unreachable !== undefined) close()
  }

  /** Said while its turn goes on: nothing that it was given is answered by it. */
  const onMessage = (text: string) => {
    const said = text.slice(0, messageLimit).toWellFormed()
    const message = said.trim() === '' ? undefined : options.say(said)
    if (!message) return
    if (++between > betweenLimit) return kill('it sent too many messages in one turn')
    const kept = { runId, group: group.folder, usedIds: [], sessionId, keepSession: keepsSession, message }
    if (!store.finishTurn(kept)) return
    transcript.keep('text', said)
    options.said()
  }

  const onEvent = (event: RunEvent, at: number | undefined): void => {
    switch (event.type) {
      case 'used':
        for (const id of event.inputs) if (open.has(id)) used.add(id)
        break
      case 'script':
        woken = event.wake
        if (event.error !== undefined) toldError = event.error.slice(0, errorLimit)
        transcript.add(
          'script',
          event.error ?? (event.wake ? 'The agent is woken.' : 'The agent is not woken.'),
        )
        break
      case 'step':
        transcript.add(event.kind, event.text, event.name)
        break
      case 'message':
        onMessage(event.text)
        break
      case 'result':
        noteSession(event.session_id)
        if (state === 'stopping') onStopped()
        else if (unasked <= unaskedLimit) onResult(event.text, at)
        break
      case 'error':
        noteSession(event.session_id)
        if (state === 'stopping') {
          onStopped()
          close()
          break
        }
        toldError = event.message.slice(0, errorLimit).toWellFormed()
        transcript.add('error', toldError)
        // What it could not answer is for a fresh run, and no other turn's answer is about it.
        used.clear()
        close()
    }
  }
  const noteSession = (id: string | null) => {
    if (id !== null && id !== '' && id.length <= sessionIdLimit) sessionId = id.toWellFormed()
  }

  let unwritten = 0
  const onBytes = (count: number) => {
    printed += count
    if (printed > outputLimit) kill(`it printed more than ${outputLimit / 1_000_000} MB in one turn`)
    unwritten += count
    if (unwritten < writtenAfter) return
    unwritten = 0
    transcript.flush()
  }
  const follow = (started: SandboxProcess) => {
    listener = listenTo({
      sandbox: started,
      reader: protocol.createReader(started.sent),
      outlet:
        protocol.outlet &&
        createOutletReader(join(input.directory, protocol.outlet.directory), protocol.outlet),
      onEvent,
      onBytes,
      delayed: error => options.log.error({ err: error, ...about }, 'an answer could not be stored yet'),
      failed(error) {
        options.log.error({ err: error, ...about }, 'what an agent said could not be dealt with')
        kill('the host failed to deal with what it said')
      },
    })
    // It may be gone before it has read everything; its exit says so.
    started.stdin.on('error', () => {})
    started.stdin.end(protocol.stdin(start))
  }

  const explain = ({ code, signal, problem }: SandboxExit): string | undefined => {
    if (isFinished) return undefined
    if (stoppedBy !== undefined) return `Stopped by ${stoppedBy}.`
    // An idle session has nothing left to do: it ends with the host as it would have ended by itself.
    if (stopping && wasIdle) return undefined
    const reason = toldError === undefined || stopping ? killedBecause : undefined
    if (reason !== undefined) {
      return `The agent was ended: ${reason}.${isLost ? ' Something of it may still be running.' : ''}`
    }
    if (problem !== undefined && killedBecause === undefined) return problem
    if (toldError !== undefined) return toldError
    if (code !== 0) return `The agent ended by itself (${signal ?? `code ${code}`}).`
    const isSilent = isTask ? !spoke : open.size > 0 && !answered
    return isSilent && !isForgotten ? silence : undefined
  }

  const launch = async (): Promise<SandboxExit> => {
    try {
      await input.clear()
      ready = true
      options.hasRoom()
      for (const file of protocol.files(start)) input.place(file)
      if (killedBecause !== undefined) return { code: null, signal: null }
      sandbox = await options.launch()
      follow(sandbox)
      if (killedBecause !== undefined) void end(sandbox)
      return await Promise.race([sandbox.exited, lost.promise])
    } catch (error) {
      // What has been started and could not be spoken to must not stay.
      await sandbox?.kill().catch(failure => options.log.error({ err: failure, ...about }, 'it stays'))
      hadNoRoom = isStorageFailure(error)
      return { code: null, signal: null, problem: error instanceof Error ? error.message : String(error) }
    }
  }

  /** Repeated until the store takes it, or the host stops: the next one does the same when it starts. */
  const note = async (write: () => void) => {
    for (;;) {
      try {
        return write()
      } catch (error) {
        options.log.error({ err: error, ...about }, 'the end of a run could not be stored')
        if (stopping) return
        await sleep(retryMs)
      }
    }
  }

  const work = async (): Promise<SessionEnd> => {
    for (const { text } of start.inputs) transcript.keep('input', text)
    const exit = await launch()
    gone = true
    clearTimeout(timer)
    clearTimeout(lostTimer)
    await listener?.finish(() => stopping)
    enter('ended')
    let error = explain(exit)
    // Some end in the moment in which they ask to: the file that says so may not be read yet.
    if (error === silence && options.decided) {
      await Promise.race([options.decided(), halted.promise])
      error = explain(exit)
    }
    const complaints = listener?.complaints() ?? ''
    if (complaints !== '') transcript.keep('log', complaints)
    if (error !== undefined) transcript.keep('error', error)
    await note(() => {
      const words =
        error !== undefined && !answered && open.size > 0 && !stopping && !hadNoRoom
          ? options.giveUp(error)
          : undefined
      if (words !== undefined) {
        for (const id of open.keys()) used.add(id)
        finishTurn(words)
      }
      // One that ended as it should has gone through everything it took.
      if (error === undefined && !protocol.namesUsed) for (const id of input.taken()) used.add(id)
      if (error === undefined && (!protocol.namesUsed || isForgotten)) {
        if ([...used].some(id => open.has(id))) finishTurn(null)
      }
      store.giveBack(runId)
      store.updateRun(runId, {
        sessionId,
        status: error === undefined ? 'done' : stoppedBy !== undefined || stopping ? 'stopped' : 'failed',
        endedAt: now(),
        result,
        error: error ?? null,
      })
    })
    transcript.close()
    try {
      await input.clear()
    } catch (failure) {
      options.log.warn({ err: failure, ...about }, 'the inbox of a run that has ended could not be emptied')
    }
    return { error, result, answered, woken, hadNoRoom }
  }

  store.insertRun(
    run,
    options.rows.map(({ id }) => id),
  )
  enter('working')
  const ended = work()

  return {
    runId,
    group: group.folder,
    kind: start.kind,
    state: () => state,
    room() {
      const isOpen = ready && !gone && !isTask && killedBecause === undefined && unreachable === undefined
      return isOpen && (state === 'working' || state === 'idle') ? inputsAtOnce - open.size : 0
    },
    feed(rows) {
      store.give(
        rows.map(({ id }) => id),
        runId,
      )
      let notices = options.notices?.() ?? []
      for (const row of rows) {
        try {
          input.post(row, notices)
          notices = []
        } catch (error) {
          // A full disk, or a directory of the agent's in its place. It is the next run's, with what came after it.
          unreachable = codeOf(error)
          options.log.warn({ err: error, ...about }, 'a follow-up could not be handed over')
          transcript.add(
            'notice',
            `A follow-up could not be handed over (${unreachable}); the next run gets it.`,
          )
          break
        }
        if (state === 'working' || open.size > 0) asides.add(inputId(row.id))
        open.set(inputId(row.id), row)
        isByDeploy &&= isDeployed(row)
        transcript.keep('input', textWithFiles(row))
      }
      if (open.size === 0) close()
      else if (state === 'idle') enter('working')
    },
    isByDeploy: () => isByDeploy,
    forget() {
      keepsSession = false
      isForgotten = true
      unreachable ??= 'it begins anew'
    },
    finish() {
      isFinished = true
    },
    stopTurn,
    close,
    kill: stop,
    ended,
  }
}

/** The channel of what the host itself says to an agent. */
const isDeployed = ({ channel, externalId }: IncomingRow): boolean =>
  channel === 'host' && externalId?.startsWith('deploy:') === true

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
