import { join } from 'node:path'
import type { RunEvent } from '@hatchway/protocol'
import { reasonOf } from '@hatchway/spool'
import { isStorageFailure } from '../../base/storage-failure.ts'
import type { SandboxExit, SandboxProcess } from '../../sandboxes/types.ts'
import { createOutletReader } from '../container-protocols/outlet.ts'
import { type Listener, listenTo } from './listen.ts'
import type { SessionOptions } from './types.ts'

/** The sandbox of one run: started once, listened to, killed if need be, and gone in the end. */
export interface SandboxRun {
  /** Starts the sandbox; resolves when it is gone. Never rejects. */
  run(handlers: SandboxHandlers): Promise<SandboxExit>
  /** ends the sandbox; the first reason counts */
  kill(reason: string): void
  killedBecause(): string | undefined
  isGone(): boolean
  /** it was killed and did not report its exit: something of it may still be running */
  isLost(): boolean
  /** the disk or the database kept it from starting */
  hadNoRoom(): boolean
  /** handles what is still in the pipe, and retries what the store has not taken, until `hurry` says to leave it */
  finishListening(hurry: () => boolean): Promise<void>
  /** the end of what it printed on standard error */
  complaints(): string
}

export interface SandboxHandlers {
  /** the inbox is empty and takes follow-ups */
  inputReady(): void
  /** `at`: when it was said, in microseconds, where that is known */
  onEvent(event: RunEvent, at: number | undefined): void
  onBytes(count: number): void
}

/** how long an exit may take after everything was killed */
const lostMs = 10_000

export function createSandboxRun(
  options: Pick<SessionOptions, 'start' | 'protocol' | 'input' | 'launch' | 'log'>,
  about: object,
): SandboxRun {
  const { start, protocol, input, log } = options
  const lost = Promise.withResolvers<SandboxExit>()
  let sandbox: SandboxProcess | undefined
  let listener: Listener | undefined
  let killedBecause: string | undefined
  let lostTimer: NodeJS.Timeout | undefined
  let isLost = false
  let isGone = false
  let hadNoRoom = false

  const kill = (reason: string) => {
    if (isGone || killedBecause !== undefined) return
    killedBecause = reason
    if (sandbox) void end(sandbox)
  }
  const end = async (started: SandboxProcess) => {
    try {
      await started.kill()
    } catch (error) {
      log.error({ err: error, ...about }, 'a sandbox could not be ended')
    }
    if (isGone) return
    lostTimer = setTimeout(() => {
      isLost = true
      lost.resolve({ code: null, signal: null })
    }, lostMs)
  }

  const converse = (started: SandboxProcess, { onEvent, onBytes }: SandboxHandlers) => {
    const { outlet } = protocol
    listener = listenTo({
      sandbox: started,
      reader: protocol.createReader(started.sent),
      outlet: outlet && createOutletReader(join(input.directory, outlet.directory), outlet),
      onEvent,
      onBytes,
      delayed: error => log.error({ err: error, ...about }, 'an answer could not be stored yet'),
      failed(error) {
        log.error({ err: error, ...about }, 'an event of an agent could not be handled')
        kill('the host failed to handle what it said')
      },
    })
    // It may be gone before it has read everything; its exit says so.
    started.stdin.on('error', () => {})
    started.stdin.end(protocol.stdin(start))
  }

  const startAndWait = async (handlers: SandboxHandlers): Promise<SandboxExit> => {
    try {
      await input.clear()
      handlers.inputReady()
      for (const file of protocol.files(start)) input.place(file)
      if (killedBecause !== undefined) return { code: null, signal: null }
      sandbox = await options.launch()
      converse(sandbox, handlers)
      if (killedBecause !== undefined) void end(sandbox)
      return await Promise.race([sandbox.exited, lost.promise])
    } catch (error) {
      // A sandbox that was started and cannot be talked to must not stay.
      await sandbox
        ?.kill()
        .catch(failure => log.error({ err: failure, ...about }, 'a sandbox could not be ended'))
      hadNoRoom = isStorageFailure(error)
      return { code: null, signal: null, problem: reasonOf(error) }
    }
  }

  return {
    async run(handlers) {
      const exit = await startAndWait(handlers)
      isGone = true
      clearTimeout(lostTimer)
      return exit
    },
    kill,
    killedBecause: () => killedBecause,
    isGone: () => isGone,
    isLost: () => isLost,
    hadNoRoom: () => hadNoRoom,
    finishListening: async hurry => listener?.finish(hurry),
    complaints: () => listener?.complaints() ?? '',
  }
}
