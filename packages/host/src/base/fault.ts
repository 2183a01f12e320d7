/**
 * Steps at which a test can end the process, to show that no step leaves anything ambiguous. Outside of tests the
 * function does nothing.
 */
export type FaultStep =
  | 'listed'
  | 'claimed'
  | 'gathered'
  | 'decoded'
  | 'deciding'
  | 'committed'
  | 'answering'
  | 'answered'
  | 'quarantining'
  | 'quarantined'
  | 'discarding'
  | 'snapshots'
  | 'released'
  | 'sync_examined'
  | 'sync_recorded'
  | 'sync_pushed'
  | 'sync_delivered'
  | 'sync_told'
  | 'copied'
  | 'attached'
  | 'wiped'
  | 'deploy_stored'
  | 'deploy_handed'
  | 'deploy_restarting'
  | 'deploy_up'

export type Fault = (step: FaultStep) => void

/** `HATCHWAY_FAULT=committed:3` ends the process, as SIGKILL does, the third time that step is reached. */
export function faultFromEnvironment(value: string | undefined): Fault {
  if (!value) return () => {}
  const [step = '', count = '1'] = value.split(':')
  let left = Number(count)
  return reached => {
    if (reached === step && --left === 0) process.kill(process.pid, 'SIGKILL')
  }
}
