import { join } from 'node:path'
import type { Layout } from '../../base/layout.ts'
import type { BuiltInHost } from '../../plugin-api/types.ts'
import { ServiceRefusal } from '../../services/define.ts'
import type { Repo, Repos } from './settings.ts'

/** What a group has of a repository. */
export interface GroupRepository {
  folder: string
  /** the repository's name in the configuration */
  name: string
  repo: Repo
  /** the group's worktree on the host */
  worktree: string
  /** the host's copy of the branch, which sandboxes see read-only */
  mirror: string
}

/** Which group works on which repository, as the configuration says. */
export interface Repositories {
  find(folder: string): GroupRepository | undefined
  /** throws a `ServiceRefusal` where there is none */
  get(folder: string): GroupRepository
  all(): readonly GroupRepository[]
  /** the other groups that work on the same repository, registered or not */
  othersOf(group: Pick<GroupRepository, 'folder' | 'name'>): string[]
}

/** in the place of a group, in what is known of taint: what was merged into a repository that several groups read */
export const sharedRepository = (name: string): string => `repo:${name}`

export const mirrorPath = (layout: Pick<Layout, 'repos'>, name: string): string =>
  join(layout.repos, `${name}.git`)

export const noRepository = 'No repository is configured for this group.'

export function createRepositories(
  host: Pick<BuiltInHost<Repos, string>, 'settings' | 'groupSettings' | 'configuredGroups' | 'layout'>,
): Repositories {
  const { settings, layout } = host
  const find = (folder: string): GroupRepository | undefined => {
    const name = host.groupSettings(folder)
    const repo = name === undefined ? undefined : settings[name]
    if (name === undefined || !repo) return undefined
    return {
      folder,
      name,
      repo,
      worktree: join(layout.worktrees, folder),
      mirror: mirrorPath(layout, name),
    }
  }
  const all = () => host.configuredGroups().flatMap(folder => find(folder) ?? [])
  return {
    find,
    get(folder) {
      const found = find(folder)
      if (!found) throw new ServiceRefusal('unavailable', noRepository)
      return found
    },
    all,
    othersOf: ({ folder, name }) =>
      all()
        .filter(other => other.folder !== folder && other.name === name)
        .map(other => other.folder),
  }
}
