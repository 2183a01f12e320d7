import type { Account } from './accounts.ts'

const usualPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** What a job sees of the host's environment: nothing but what is named here or in the configuration. */
export function jobEnvironment(
  account: Account,
  variables: readonly string[],
  environment: NodeJS.ProcessEnv,
): Record<string, string> {
  const given: Record<string, string> = {
    PATH: environment.PATH ?? usualPath,
    HOME: account.home,
    USER: account.name,
    LOGNAME: account.name,
  }
  for (const name of ['LANG', 'TZ', ...variables]) {
    const value = environment[name]
    if (value !== undefined) given[name] = value
  }
  return given
}
