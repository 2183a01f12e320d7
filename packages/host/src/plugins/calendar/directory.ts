import type { ServiceContext } from '../../commands/service-tools.ts'
import { isAllowed } from '../../commands/service-tools.ts'
import { ServiceRefusal } from '../../services/define.ts'
import { markOf } from './event-id.ts'
import { findCalendars, nameCalendars } from './names.ts'
import { type CalendarServer, openServer, type RemoteCalendar } from './server.ts'
import type { CalendarAccount, CalendarAccounts } from './settings.ts'

/** Which calendars there are for a group, and which one it means. What a group may not use does not exist for it. */
export interface Directory {
  all(context: ServiceContext): Promise<Listing>
  /** by its name; left out: the primary one */
  find(context: ServiceContext, name: string | undefined): Promise<Found>
  /** the one an event was seen in */
  findMarked(context: ServiceContext, mark: string): Promise<Found>
  /** what is wrong, for people */
  problems(): string[]
}

interface NamedCalendar extends RemoteCalendar {
  name: string
  isPrimary: boolean
}

interface Listing {
  calendars: NamedCalendar[]
  /** accounts that could not be asked, and why */
  problems: { account: string; error: Error }[]
}

export interface Found {
  calendar: NamedCalendar
  server: CalendarServer
}

/** Tells calendars apart, for good: their names can change. */
export const markOfCalendar = ({ account, url }: RemoteCalendar): string =>
  `${account}/${markOf(account, url)}`

/** What containers ask for that were not told a name. */
const primaryName = 'primary'

const mostNames = 20

export function openDirectory(accounts: CalendarAccounts, environment: NodeJS.ProcessEnv): Directory {
  const homes = new Map<string, string>()
  const lastProblems = new Map<string, string>()

  const allowed = ({ group }: ServiceContext): [string, CalendarAccount][] =>
    Object.entries(accounts).filter(([, account]) => isAllowed(account.groups, group))

  const open = (name: string, account: CalendarAccount, signal: AbortSignal): CalendarServer => {
    const password = environment[account.passwordVariable]
    if (!password) throw new ServiceRefusal('unavailable', passwordMissing(name, account))
    return openServer({ name, account, password, signal, homes })
  }

  const ask = async (
    context: ServiceContext,
    asked: readonly [string, CalendarAccount][],
  ): Promise<Listing> => {
    const found: RemoteCalendar[] = []
    const problems: Listing['problems'] = []
    await Promise.all(
      asked.map(async ([name, account]) => {
        try {
          found.push(...(await open(name, account, context.signal).calendars()))
          lastProblems.delete(name)
        } catch (error) {
          context.signal.throwIfAborted()
          if (!(error instanceof ServiceRefusal)) throw error
          lastProblems.set(name, error.message)
          problems.push({ account: name, error })
        }
      }),
    )
    const order = Object.keys(accounts)
    const rank = ({ account }: { account: string }) => order.indexOf(account)
    const text = ({ title, url }: RemoteCalendar) => `${title}\n${url}`
    found.sort((one, other) => rank(one) - rank(other) || text(one).localeCompare(text(other), 'en'))
    problems.sort((one, other) => rank(one) - rank(other))
    const primary = problems.length === 0 && found.length === 1 ? found[0] : primaryOf(found, asked)
    const calendars = nameCalendars(found.map(calendar => ({ ...calendar, isPrimary: calendar === primary })))
    return { calendars, problems }
  }

  const all = (context: ServiceContext) => ask(context, allowed(context))

  /** Of the account that the name begins with alone: another one that does not answer is not waited for. */
  const ofAccount = (context: ServiceContext, name: string): Promise<Listing> | undefined => {
    const one = allowed(context).filter(([account]) => name.toLowerCase().startsWith(`${account}/`))
    return one.length === 0 ? undefined : ask(context, one)
  }

  const chosen = (calendar: NamedCalendar, { signal }: ServiceContext): Found => {
    const account = accounts[calendar.account]
    if (!account) throw new Error('There is no such account.')
    return { calendar, server: open(calendar.account, account, signal) }
  }

  return {
    all,
    async find(context, name) {
      const own = name === undefined ? undefined : await ofAccount(context, name)
      const [only, ...others] = own && name !== undefined ? findCalendars(own.calendars, name) : []
      if (only && others.length === 0)
        return chosen({ ...only, name: `${only.account}/${only.title}` }, context)
      const { calendars, problems } = await all(context)
      const named = name === undefined ? [] : findCalendars(calendars, name)
      const isPrimary = name === undefined || (named.length === 0 && name === primaryName)
      const meant = isPrimary ? calendars.filter(calendar => calendar.isPrimary) : named
      const [calendar] = meant
      if (calendar && meant.length === 1) return chosen(calendar, context)
      const [problem] = problems
      if (calendars.length === 0 && problem) throw problem.error
      const silent = problem ? ` Besides, not all could be asked: ${problem.error.message}` : ''
      const names = calendars.slice(0, mostNames).map(one => `“${one.name}”`)
      const rest = calendars.length > mostNames ? ' and others, see list_calendars' : ''
      const there =
        names.length === 0 ? 'There are none for this group.' : `There are ${names.join(', ')}${rest}.`
      if (isPrimary && names.length > 0)
        throw new ServiceRefusal('invalid_field', `calendar: say which one. ${there}${silent}`)
      throw meant.length > 1
        ? new ServiceRefusal('invalid_field', `calendar: several are called so. ${there}${silent}`)
        : new ServiceRefusal('not_found', `There is no calendar of this name. ${there}${silent}`)
    },
    async findMarked(context, mark) {
      const own = await ofAccount(context, mark)
      const calendar = own?.calendars.find(one => markOfCalendar(one) === mark)
      if (calendar) return chosen(calendar, context)
      throw (
        own?.problems[0]?.error ??
        new ServiceRefusal('not_found', 'The calendar of this event does not exist.')
      )
    },
    problems: () => [
      ...Object.entries(accounts)
        .filter(([, { passwordVariable }]) => !environment[passwordVariable])
        .map(([name, account]) => passwordMissing(name, account)),
      ...lastProblems.values(),
    ],
  }
}

/** Of several the first one that the configuration names. */
function primaryOf(
  calendars: readonly RemoteCalendar[],
  accounts: readonly [string, CalendarAccount][],
): RemoteCalendar | undefined {
  for (const [name, account] of accounts) {
    const first = account.calendars?.[0]
    if (first === undefined) continue
    return calendars.find(one => one.account === name && (one.title === first || one.segment === first))
  }
  return undefined
}

const passwordMissing = (name: string, { passwordVariable }: CalendarAccount): string =>
  `The calendar account “${name}” has no password: the operator has to set ${passwordVariable} in the host’s environment.`
