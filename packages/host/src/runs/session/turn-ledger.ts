import type { IncomingRow } from '../../store/types.ts'
import type { ContainerProtocol } from '../container-protocols/types.ts'
import { inputId } from '../input-box.ts'

/**
 * Which inputs a run was given, and which of them a result answers. It does no I/O: the session asks which turn a result
 * ends, stores that turn, and records it here afterwards. Each input has one or more of these marks:
 *
 *   open      given and not answered
 *   named     the current turn is about it: the agent says so, or it is a first input of another project's container,
 *             which gets all of them as one prompt
 *   aside     given while the agent was busy with something else
 *   doubtful  an aside that the agent took out of its inbox before it last spoke
 *   stopped   answered by "Stopped by …"
 *
 * A container that names nothing has used what it took out of its inbox before it spoke. It may keep an aside for its
 * next turn, though, so an aside becomes doubtful first and counts as used when the container speaks once more. If it
 * has nothing more to say (null), nothing is left, and every doubtful input was used.
 */
export interface TurnLedger {
  /** `isBusy`: the agent is working on something else */
  give(row: IncomingRow, isBusy: boolean): void
  /** the agent says that its current turn is about these inputs */
  name(ids: readonly string[]): void
  /** the current turn failed: its inputs stay open, and no later result is about them */
  turnFailed(): void
  openCount(): number
  /** whether no input waits for an answer; a doubtful one may have its answer already */
  isAnswered(): boolean
  /** whether the current turn is about nothing but inputs that a person has stopped */
  isStopped(): boolean
  /** the turn that ends with this text; `taken`: what the agent has taken out of its inbox by then */
  turn(text: string | null, taken: readonly string[]): Turn
  /** a turn that answers every open input */
  wholeTurn(): Turn
  /** what a run that ended without an error has used silently */
  lastTurn(taken: readonly string[]): Turn
  /** the turn is stored */
  record(turn: Turn, how?: 'stopped'): void
}

export interface Turn {
  answers: readonly string[]
  /** ids of the answered messages in the store */
  rowIds: readonly number[]
  doubtful: readonly string[]
}

export function createTurnLedger(
  rows: readonly IncomingRow[],
  { ownRunner, namesUsed }: Pick<ContainerProtocol, 'ownRunner' | 'namesUsed'>,
): TurnLedger {
  const open = new Map(rows.map(row => [inputId(row.id), row]))
  const named = new Set<string>(ownRunner ? [] : open.keys())
  const asides = new Set<string>()
  const doubtful = new Set<string>()
  const stopped = new Set<string>()
  let namesStopped = false

  const turnOf = (ids: Iterable<string>, unsure: readonly string[] = []): Turn => {
    const answers = [...new Set(ids)].filter(id => open.has(id))
    return { answers, rowIds: answers.flatMap(id => open.get(id)?.id ?? []), doubtful: unsure }
  }
  const forgetNames = () => {
    named.clear()
    namesStopped = false
  }

  return {
    give(row, isBusy) {
      const id = inputId(row.id)
      if (isBusy || open.size > 0) asides.add(id)
      open.set(id, row)
    },
    name(ids) {
      for (const id of ids) {
        if (open.has(id)) named.add(id)
        else if (stopped.has(id)) namesStopped = true
      }
    },
    turnFailed: forgetNames,
    openCount: () => open.size,
    isAnswered: () => open.size <= doubtful.size,
    isStopped: () => namesStopped && named.size === 0,
    turn(text, taken) {
      if (namesUsed) return turnOf(named)
      const settled = [...doubtful].slice(0, text === null ? doubtful.size : 1)
      const fresh = taken.filter(id => open.has(id) && !settled.includes(id))
      return turnOf(
        [...named, ...settled, ...fresh.filter(id => !asides.has(id))],
        fresh.filter(id => asides.has(id)),
      )
    },
    wholeTurn: () => turnOf(open.keys()),
    lastTurn: taken => turnOf(namesUsed ? named : [...named, ...taken]),
    record(turn, how) {
      for (const id of turn.doubtful) doubtful.add(id)
      for (const id of turn.answers) {
        open.delete(id)
        doubtful.delete(id)
        if (how === 'stopped') stopped.add(id)
      }
      forgetNames()
    },
  }
}
