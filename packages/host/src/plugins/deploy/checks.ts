import { statSync } from 'node:fs'
import { project } from '../../base/parts.ts'
import { ask, findProgram } from '../../base/programs.ts'
import { bad, type Check } from '../../plugin-api/check.ts'
import type { DeploySettings } from './settings.ts'

const gitMs = 10_000

export const checks: readonly Check<DeploySettings>[] = [
  {
    name: 'checkout',
    async run({ settings: { enabled, directory = project } }) {
      if (enabled === 'no') return []
      if (!statSync(directory, { throwIfNoEntry: false })?.isDirectory())
        return [bad('configuration', `deploy.directory: ${directory} is not there.`)]
      return (await hasCommit(directory))
        ? []
        : [bad('configuration', `deploy.directory: ${directory} is not a git checkout with a commit.`)]
    },
  },
]

async function hasCommit(directory: string): Promise<boolean> {
  const program = findProgram('git')
  if (program === undefined) return false
  // Not even the repository's own settings may start a program here.
  const safe = ['-c', 'core.fsmonitor=false', '-c', 'safe.directory=*', '-C', directory]
  const { code } = await ask(program, [...safe, 'rev-parse', '--verify', '--quiet', 'HEAD'], {
    timeoutMs: gitMs,
  })
  return code === 0
}
