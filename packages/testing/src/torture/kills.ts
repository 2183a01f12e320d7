import { setTimeout as sleep } from 'node:timers/promises'
import type { Launched } from '../daemon/process.ts'
import { createRandom } from '../random.ts'
import type { Fault, Round } from './plan.ts'
import type { Testbed } from './testbed.ts'
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
  testbed: Testbed,
  traffic: Traffic,
  round: Round & { fault: Extract<Fault, { kind: 'moment' | 'step' | 'call' }> },
): Promise<boolean> {
  const { fault } = round
  const daemon = testbed.start({
    ...(fault.kind === 'step' ? { env: { HATCHWAY_FAULT: `${fault.step}:${fault.times}` } } : {}),
    ...(fault.kind === 'call' ? { under: failing(fault) } : {}),
  })
  let isOver = false
  let deadline = Number.POSITIVE_INFINITY
  const isStarting = fault.kind === 'moment' && fault.isStarting
  if (isStarting) deadline = performance.now() + fault.ms / 2
  const begin = () => {
    deadline = Math.min(deadline, performance.now() + fault.ms)
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
  if (fault.kind === 'call') await daemon.kill()
  else await killAlone(daemon)
  await traffic.settle()
  return isReached
}

/** Only the thread that has the store and the spool: agents are not to fail for a reason that is not the host's. */
const failing = ({ injection, when }: Extract<Fault, { kind: 'call' }>): string[] => {
  const [call = ''] = injection.split(':')
  return ['strace', '-qq', '-o', '/dev/null', '-e', `trace=${call}`, '-e', `inject=${injection}:when=${when}`]
}
