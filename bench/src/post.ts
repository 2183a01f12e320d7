import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Writes a file as NanoClaw's containers do: whole under `{name}.tmp` in the same directory, then renamed. Says when
 * the rename began; everything before it is the writer's business.
 */
export const post = (directory: string, name: string, body: string): bigint => {
  const path = join(directory, name)
  writeFileSync(`${path}.tmp`, body)
  const at = process.hrtime.bigint()
  renameSync(`${path}.tmp`, path)
  return at
}

/** A pause of `milliseconds` on average, never twice the same, so that no timer on the other side falls into step. */
export const pause = (milliseconds: number) => sleep(milliseconds * (0.5 + Math.random()))

/** Between two samples of an idle system. */
export const idleGap = 5
