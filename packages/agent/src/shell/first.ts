import { accessSync, constants, existsSync } from 'node:fs'
import { join } from 'node:path'

const usualPath = '/usr/local/bin:/usr/bin:/bin'

/**
 * The environment of an agent whose shells ask first: they come before the real ones in PATH, and one of them is SHELL.
 * Where the host wants no such shells, the environment as it is.
 */
export function shellsFirst(variables: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const shells = variables.HATCHWAY_SHELL_GATE
  if (!shells) return variables
  const shell = join(shells, located('bash', variables) === undefined ? 'sh' : 'bash')
  if (!existsSync(shell)) {
    throw new Error(
      `The shells that ask the host first are not at ${shells}. If the image is an old one, build it anew.`,
    )
  }
  return {
    ...variables,
    PATH: `${shells}:${variables.PATH || usualPath}`,
    SHELL: shell,
    HATCHWAY_NODE: process.execPath,
  }
}

/** Where a program is found by its name. */
export function located(name: string, variables: NodeJS.ProcessEnv): string | undefined {
  if (name.includes('/')) return name
  return (variables.PATH || usualPath)
    .split(':')
    .map(directory => join(directory, name))
    .find(isProgram)
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
