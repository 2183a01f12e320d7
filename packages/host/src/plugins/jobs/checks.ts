import { statSync } from 'node:fs'
import { bad, type Check, type Finding, some, warning } from '../../plugin-api/check.ts'
import { accountOf, ownAccount } from './accounts.ts'
import type { HostJobsSettings } from './settings.ts'

const isDirectory = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true

export const checks: readonly Check<HostJobsSettings>[] = [
  {
    name: 'directories and users',
    async run({ settings: { enabled, directories, users } }) {
      if (enabled === 'no') return []
      const findings: Finding[] = []
      if (directories.length === 0)
        findings.push(
          warning(
            'configuration',
            '`hostJobs` is on and names no directory, so that nothing runs. Name one in `hostJobs.directories`.',
          ),
        )
      const missing = directories.filter(path => !isDirectory(path))
      if (missing.length > 0)
        findings.push(
          bad(
            'configuration',
            `hostJobs.directories: ${some(missing)} is not there. Make it, or take it out.`,
          ),
        )
      const own = ownAccount()
      if (own.uid === 0 && users.length === 0)
        findings.push(
          bad('configuration', 'hostJobs.users: a daemon that is root runs no job as root. Name a user.'),
        )
      for (const user of users) {
        if (!(await accountOf(user)))
          findings.push(bad('configuration', `hostJobs.users: this machine has no user ${user}.`))
        else if (own.uid !== 0 && user !== own.name)
          findings.push(
            warning('configuration', `hostJobs.users: only a daemon that is root can run jobs as ${user}.`),
          )
      }
      return findings
    },
  },
]
