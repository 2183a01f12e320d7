import type { Finding } from '../report.ts'
import { hasProgram } from './available.ts'
import { keepBusy } from './kills.ts'
import { inOneScene, openScene, type PartRun, untried } from './parts.ts'

/** Every sync takes its time, in all threads; then the daemon is ended by force. */
export async function tortureSlowDisk(run: PartRun): Promise<Finding[]> {
  if (!hasProgram('strace')) return untried('slow-disk', 'strace is not installed')
  const scene = await openScene(run)
  const { testbed, traffic } = scene
  return inOneScene('slow-disk', run, scene, async (round, tally) => {
    const { fault } = round
    if (fault.kind !== 'slow') return
    const delay = `inject=fdatasync,fsync:delay_exit=${fault.syncMs * 1000}`
    const daemon = testbed.start({
      under: ['strace', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=fdatasync,fsync', '-e', delay],
    })
    let isOver = false
    daemon.exited.then(() => {
      isOver = true
    })
    // However slow it is, it comes up.
    try {
      await daemon.ready
    } catch (error) {
      tally.saw(error instanceof Error ? error.message : String(error))
    }
    const until = performance.now() + fault.ms
    await keepBusy(traffic, round, () => isOver || performance.now() > until)
    if (isOver) tally.saw(`the daemon ended by itself: ${daemon.output().slice(-300)}`)
    await daemon.kill()
    await traffic.settle()
  })
}
