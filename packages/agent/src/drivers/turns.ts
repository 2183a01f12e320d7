import type { RunInput } from '@hatchway/protocol'
import type { DriverSession } from './types.ts'

/**
 * For agents that cannot be spoken to while they work: what comes meanwhile waits for the next turn, all of it
 * together. `play` never rejects: it tells its own errors. It ends soon after `stopped` fires, with a result.
 */
export function takeTurns(
  play: (inputs: readonly RunInput[], stopped: AbortSignal) => Promise<void>,
  end: () => void | Promise<void>,
) {
  let waiting: RunInput[] = []
  let playing: Promise<void> | undefined
  let finishing = false
  let stopping = new AbortController()
  let settle: () => void = () => {}
  const ended = new Promise<void>(resolve => {
    settle = resolve
  })

  const playAll = async () => {
    while (waiting.length > 0 && !finishing) {
      const inputs = waiting
      waiting = []
      stopping = new AbortController()
      await play(inputs, stopping.signal)
    }
    playing = undefined
  }
  const session: DriverSession = {
    feed(inputs) {
      if (finishing) return
      waiting.push(...inputs)
      playing ??= playAll()
    },
    stopTurn() {
      waiting = []
      stopping.abort()
    },
    async finish() {
      finishing = true
      await playing
      await end()
      settle()
    },
    async close() {
      finishing = true
      await end()
      settle()
    },
    ended,
  }
  return session
}
