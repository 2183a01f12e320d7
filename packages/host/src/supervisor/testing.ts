import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A repository of its own in a directory that is there already. */
export function makeRepository(directory: string) {
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=Ann', '-c', 'user.email=ann@example.org', ...args], {
      cwd: directory,
      encoding: 'utf8',
    }).trim()
  git('init', '--quiet', '--initial-branch', 'main')
  return {
    git,
    /** the revision */
    commit(name: string) {
      writeFileSync(join(directory, 'name'), name)
      git('add', 'name')
      git('commit', '--quiet', '--message', name)
      return git('rev-parse', 'HEAD')
    },
  }
}
