import { randomUUID } from 'node:crypto'
import { renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'
import type { Config } from '@hatchway/host'
import { Failure } from './failure.ts'

/**
 * Written under another name and loaded first, so that only a valid configuration replaces one. One that is valid,
 * but not what was wanted, is not written.
 */
export async function writeConfig(
  file: string,
  content: string,
  isWanted: (config: Config) => boolean = () => true,
): Promise<{ config: Config; isWritten: boolean }> {
  const { loadConfig, ConfigError } = await import('@hatchway/host/config')
  const trial = join(dirname(file), `.hatchway-${randomUUID()}${extname(file)}`)
  writeFileSync(trial, content, { mode: statSync(file, { throwIfNoEntry: false })?.mode ?? 0o644 })
  try {
    const config = await loadConfig({ file: trial, env: {} })
    const isWritten = isWanted(config)
    if (isWritten) renameSync(trial, file)
    return { config, isWritten }
  } catch (error) {
    throw error instanceof ConfigError
      ? new Failure(`Nothing was written.\n${error.message.replaceAll(trial, file)}`)
      : error
  } finally {
    rmSync(trial, { force: true })
  }
}
