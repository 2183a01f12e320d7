import { setTimeout as sleep } from 'node:timers/promises'
import type { Launched } from '../launch.ts'
import { createRandom } from '../random.ts'
import type { Household } from './household.ts'
import type { Hurt, Round } from './plan.ts'
import type { Traffic } from './traffic.ts'

/** between two things that are asked */
const stepMs = 60

/** Asks without pause, until it is over or somebody says so. */
export async function keepBusy(
  traffic: Traffic,
  { seed }: Pick<Round, 'seed'>,
  isOver: () => boolean,
): Promise<void> {
  const random = createRandom(seed)
  while (!isOver()) {
    traffic.tick(random)
    await sleep(random.below(stepMs * 2))
  }
}

/** Ends the daemon alone, as the kernel does where memory is short: what it has started has to notice. */
export async function killAlone(daemon: Launched): Promise<void> {
  try {
    process.kill(daemon.pid, 'SIGKILL')
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
  await daemon.exited
}

/** Runs a daemon that is ended by force, by its own step or by us; whether its step was reached. */
export async function killRound(
  household: Household,
  traffic: Traffic,
  round: Round & { hurt: Extract<Hurt, { kind: 'moment' | 'step' | 'call' }> },
): Promise<boolean> {
  const { hurt } = round
  const daemon = household.start({
    ...(hurt.kind === 'step' ? { env: { HATCHWAY_FAULT: `${hurt.step}:${hurt.times}` } } : {}),
    ...(hurt.kind === 'call' ? { under: failing(hurt) } : {}),
  })
  let isOver = false
  let deadline = Number.POSITIVE_INFINITY
  const isStarting = hurt.kind === 'moment' && hurt.isStarting
  if (isStarting) deadline = performance.now() + hurt.ms / 2
  const begin = () => {
    deadline = Math.min(deadline, performance.now() + hurt.ms)
  }
  // One whose calls fail may never be ready.
  const late = setTimeout(begin, 20_000)
  daemon.ready.then(begin, () => {})
  daemon.exited.then(() => {
    isOver = true
  })
  await keepBusy(traffic, round, () => isOver || performance.now() > deadline)
  clearTimeout(late)
  const isReached = isOver
  if (hurt.kind === 'call') await daemon.kill()
  else await killAlone(daemon)
  await traffic.settle()
  return isReached
}

/** Only the thread that has the store and the spool: agents are not to fail for a reason that is not the host's. */
const failing = ({ injection, when }: Extract<Hurt, { kind: 'call' }>): string[] => {
  const [call = ''] = injection.split(':')
  return ['strace', '-qq', '-o', '/dev/null', '-e', `trace=${call}`, '-e', `inject=${injection}:when=${when}`]
}
