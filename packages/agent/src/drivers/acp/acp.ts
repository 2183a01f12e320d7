import type { RunInput } from '@hatchway/protocol'
import { reasonOf } from '@hatchway/spool'
import { aboutThePlace, promptOf } from '../prompt.ts'
import { takeTurns } from '../turns.ts'
import type { Driver } from '../types.ts'
import { type Connection, connect } from './connection.ts'
import { openMemory } from './memory.ts'
import { openTurnLog } from './turn-log.ts'

const stoppedBefore = 'A person stopped your last turn before it was finished.\n\n'

/**
 * Any agent that speaks the Agent Client Protocol: one process for the whole run, asked turn by turn.
 *
 *   opening   its process is started; it goes on with the session it had, or begins a new one. It cannot → the run fails
 *   idle      it waits. If it ends by itself, the next turn opens it again
 *   working   a turn runs. What is fed meanwhile waits for the next turn. It breaks → `error`, its process is ended
 *   stopped   it is asked to end its turn; where it does not, its process is ended. Either way → `result` without text
 */
export const acp: Driver = async context => {
  const { start, environment, emit } = context
  const memory = openMemory(environment.variables.HOME ?? environment.groupDirectory, start.session_id)
  // An isolated task's conversation is nobody's later.
  const isKept = start.kind === 'chat' || start.session_id !== null
  let sessionId = start.session_id
  let isFirst = true
  let wasStopped = false
  let isPlaying = false
  /** said to the agent before its next prompt */
  let introduction = ''

  const open = async (): Promise<Connection> => {
    const opened = await connect(context, sessionId)
    sessionId = opened.sessionId
    introduction = `${aboutThePlace(start)}\n\n${opened.isResumed ? '' : memory.earlier()}`
    emit({ type: 'session', session_id: sessionId })
    return opened
  }
  let connection = await open()

  const turn = async (inputs: readonly RunInput[], stopped: AbortSignal): Promise<string | null> => {
    const log = openTurnLog(emit)
    const asked = promptOf(inputs, start, isFirst)
    isFirst = false
    try {
      if (!connection.isOpen()) connection = await open()
      const prompt = introduction + (wasStopped ? stoppedBefore : '') + asked
      introduction = ''
      wasStopped = false
      const reason = await connection.prompt(prompt, log.take, stopped)
      if (reason !== 'end_turn' && !stopped.aborted)
        emit({ type: 'step', kind: 'notice', text: `The agent ended its turn early (${reason}).` })
    } catch (error) {
      connection.kill()
      if (!stopped.aborted) {
        log.end()
        throw error
      }
    }
    const answer = log.end()
    if (isKept)
      memory.add(connection.sessionId, {
        asked: inputs.map(({ text }) => text).join('\n'),
        answered: answer ?? '',
      })
    return stopped.aborted ? null : answer
  }
  return takeTurns(
    async (inputs, stopped) => {
      isPlaying = true
      emit({ type: 'used', inputs: inputs.map(({ id }) => id) })
      try {
        emit({ type: 'result', text: await turn(inputs, stopped), session_id: sessionId })
      } catch (error) {
        emit({ type: 'error', message: reasonOf(error), session_id: sessionId })
      }
      wasStopped ||= stopped.aborted
      isPlaying = false
    },
    async () => {
      if (isPlaying) connection.kill()
      else await connection.end()
    },
  )
}
