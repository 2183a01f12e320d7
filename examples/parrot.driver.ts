import { takeTurns } from '../packages/agent/src/drivers/turns.ts'
import type { Driver } from '../packages/agent/src/drivers/types.ts'

/** Says what it was told. It is told things in turns; what comes during one waits for the next. */
export const parrot: Driver = async ({ start, emit }) =>
  takeTurns(
    async inputs => {
      // From here on the host counts them as read; the result below answers them.
      emit({ type: 'used', inputs: inputs.map(({ id }) => id) })
      emit({ type: 'step', kind: 'notice', text: `${start.assistant} was told ${inputs.length} things.` })
      emit({ type: 'result', text: inputs.map(({ text }) => text).join(' '), session_id: start.session_id })
    },
    // Nothing of it runs between turns.
    () => {},
  )
