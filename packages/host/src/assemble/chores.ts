import type { Kernel } from './kernel.ts'

const everyMs = 60_000
/** while there is more than is kept */
const againMs = 50
/** how long a large answer is given again to whoever asks again */
const largeAnswersMs = 3_600_000
/** More than finished files that may still lie in the spool: without its row, one would be executed again. */
const rowsNeeded = 200_000

/** Forgets what is older than the configuration keeps, a little every minute. */
export function startChores({
  config,
  store,
  quarantine,
  log,
}: Pick<Kernel, 'config' | 'store' | 'quarantine' | 'log'>): { stop(): void } {
  const { keep, limits } = config
  const prune = (): boolean => {
    quarantine.flush()
    const commands = Math.max(keep.commands, rowsNeeded)
    const more = [
      store.prune({ ...keep, commands, messageBytes: limits.messageBytes }),
      store.requests.prune(Date.now() - largeAnswersMs),
      store.audit.prune({ entries: keep.audit, days: keep.auditDays }, Date.now()),
    ]
    return more.includes(true)
  }
  const doChores = () => {
    let more = false
    try {
      more = prune()
    } catch (error) {
      log.error({ err: error }, 'tidying up failed; it is tried again in a minute')
    }
    timer = setTimeout(doChores, more ? againMs : everyMs)
  }
  let timer = setTimeout(doChores, everyMs)
  return { stop: () => clearTimeout(timer) }
}
