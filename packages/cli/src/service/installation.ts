import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { Failure } from '../failure.ts'

/** The files of Hatchway that are running. */
export interface Installation {
  node: string
  /** bin/hatchway.mjs */
  program: string
  /** the folder of the package, or the root of the clone */
  directory: string
  version: string
  kind: 'clone' | 'npm' | 'npx' | 'pnpm'
}

export function findInstallation(program = process.argv[1] ?? ''): Installation {
  const real = realpathSync(program)
  const own = packageAbove(dirname(real))
  if (own === undefined) throw new Failure(`${real} belongs to no package. Install Hatchway again.`)
  const parent = dirname(own.directory)
  const isInstalled = basename(parent) === 'node_modules'
  const kind = !isInstalled
    ? 'clone'
    : parent.includes('/_npx/')
      ? 'npx'
      : parent.includes('/.pnpm/')
        ? 'pnpm'
        : 'npm'
  // In a clone the command line is packages/cli; what is checked out and built is the folder above `packages`.
  const root = kind === 'clone' ? dirname(parent) : own.directory
  return { node: process.execPath, program: real, directory: root, version: own.version, kind }
}

function packageAbove(from: string): { directory: string; version: string } | undefined {
  for (let directory = from; ; directory = dirname(directory)) {
    const file = join(directory, 'package.json')
    if (existsSync(file)) return { directory, version: versionIn(file) }
    if (directory === dirname(directory)) return undefined
  }
}

export function versionIn(packageFile: string): string {
  const about: unknown = JSON.parse(readFileSync(packageFile, 'utf8'))
  const isNamed = typeof about === 'object' && about !== null && 'version' in about
  return isNamed && typeof about.version === 'string' ? about.version : ''
}
