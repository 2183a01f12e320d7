import { statSync } from 'node:fs'
import { ask, findProgram } from '../../base/programs.ts'
import type { Check, Finding } from '../../plugin-api/check.ts'
import type { Repos } from './settings.ts'

const gitMs = 10_000

/** Whether the repositories that the configuration names are there, with their branches. */
export const checks: readonly Check<Repos>[] = [
  {
    name: 'repositories',
    async run({ settings }) {
      const findings: Finding[] = []
      for (const [name, { path, branch }] of Object.entries(settings)) {
        const problem = await problemWith(path, branch)
        if (problem !== undefined)
          findings.push({ what: 'configuration', state: 'bad', says: `repos.${name}: ${problem}` })
      }
      return findings
    },
  },
]

async function problemWith(path: string, branch: string): Promise<string | undefined> {
  const isDirectory = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
  if (!isDirectory) return `${path} is not a directory.`
  const program = findProgram('git')
  if (program === undefined) return 'there is no program `git` on this machine. Install it.'
  // Not even the repository's own settings may start a program here.
  const safe = ['-c', 'core.fsmonitor=false', '-c', 'safe.directory=*', '-C', path]
  const git = async (...args: string[]) =>
    (await ask(program, [...safe, ...args], { timeoutMs: gitMs })).code === 0
  if (!(await git('rev-parse', '--git-dir')))
    return `${path} is not a git repository. Correct it, or run: git init ${path}`
  if (!(await git('rev-parse', '--verify', '--quiet', `refs/heads/${branch}`)))
    return `${path} has no branch ${branch}. Correct \`branch\`, or make one with a first commit.`
  return undefined
}
