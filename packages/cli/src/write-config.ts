import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, extname, join, resolve } from 'node:path'
import type { Config } from '@hatchway/host'
import { Failure } from './failure.ts'

/**
 * What a new configuration is called. Before 22.18, Node does not read TypeScript; and where the folder's package.json
 * does not say so, as npm init leaves it, a file has to be called a module.
 */
export function usualConfigFile(folder = process.cwd()): string {
  if (!process.features.typescript) return 'hatchway.config.mjs'
  return isModuleFolder(folder) ? 'hatchway.config.ts' : 'hatchway.config.mts'
}

function isModuleFolder(folder: string): boolean {
  const file = join(folder, 'package.json')
  if (!existsSync(file)) return folder !== dirname(folder) && isModuleFolder(dirname(folder))
  const about: unknown = JSON.parse(readFileSync(file, 'utf8'))
  return typeof about === 'object' && about !== null && 'type' in about && about.type === 'module'
}

/** Where Hatchway can be imported, the configuration has its types, and an editor knows every setting. */
export function canImport(file: string): boolean {
  try {
    createRequire(resolve(file)).resolve('hatchway/config')
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error) return false
    throw error
  }
}

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
