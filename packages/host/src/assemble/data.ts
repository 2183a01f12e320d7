import { createQuarantine } from '@hatchway/spool'
import type { Logger } from 'pino'
import { faultFromEnvironment } from '../base/fault.ts'
import { clearStaging, createLayout, layoutOf } from '../base/layout.ts'
import { acquire } from '../base/lock.ts'
import { createLogger } from '../base/logger.ts'
import { createOwners, ownerRule } from '../base/owners.ts'
import { createOwnership } from '../base/ownership.ts'
import { createRetries } from '../base/retry.ts'
import type { Config } from '../config.ts'
import { createPositions } from '../store/positions.ts'
import { openStore } from '../store/sqlite.ts'
import type { Supervision } from '../supervisor/supervised.ts'

export interface OpenOptions {
  /** false: only for a moment, to look or to change something; no file is taken */
  watch: boolean
  log?: Logger
  /** who starts this process again when it has ended; left out: nobody */
  supervision?: Supervision | undefined
}

export type Data = Awaited<ReturnType<typeof openData>>

const lockWaitMs = 3000
/** a command that has it for a moment must not make a new revision look broken */
const patientLockWaitMs = 15_000

/** The data directory and what is in it. It is ours alone from here to `close`. */
export async function openData(config: Config, options: OpenOptions) {
  const log = options.log ?? createLogger(config)
  // Modes are chosen where something is made. The stricter umask of a hardened service would lock the containers out.
  process.umask(0o022)
  const layout = layoutOf(config.data)
  createLayout(layout)
  const lock = await acquire(config.data, {
    waitMs: options.supervision ? patientLockWaitMs : lockWaitMs,
    purpose: options.watch ? 'daemon' : 'command',
  })
  clearStaging(layout)
  const retries = createRetries({ log, now: Date.now })
  const store = openStore({
    path: layout.database,
    durability: config.durability,
    prepare: options.watch,
    commits: retries,
  })
  const owners = createOwners(config, store)
  return {
    config,
    log,
    layout,
    store,
    retries,
    owners,
    ownership: createOwnership({ layout, owners, store, rule: ownerRule(config), log }),
    positions: createPositions(store),
    quarantine: createQuarantine({
      directory: layout.errors,
      staging: layout.staging,
      limitBytes: config.limits.errorBytes,
    }),
    fault: faultFromEnvironment(process.env.HATCHWAY_FAULT),
    now: () => new Date(),
    close() {
      store.close()
      lock.release()
    },
  }
}
