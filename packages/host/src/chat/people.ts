import { type Config, settingsFor, settingsOf } from '../config.ts'

/** Somebody on a platform. */
export interface Speaker {
  channel: string
  /** the platform's own lasting id */
  sender: string
}

const operator = 'operator'

/** Whoever is at this machine, at a browser with the token or at a terminal; no other channel's word for it counts. */
export const isOperator = ({ channel, sender }: Speaker): boolean => channel === 'web' && sender === operator

/** Of an entry that names its platform, such as `telegram:601`. An id of Matrix has a colon, too, but begins with `@`. */
const withPlatform = /^[a-z][\w-]*:/

/**
 * Whether a list of the configuration names somebody. The same id may be different people on two platforms: one without a
 * platform is somebody on that of the group's own chat.
 */
export const isNamed = (list: readonly string[], person: Speaker, isOwnPlatform: boolean): boolean =>
  list.some(entry => {
    if (entry === operator) return isOperator(person)
    return withPlatform.test(entry)
      ? entry === `${person.channel}:${person.sender}`
      : isOwnPlatform && entry === person.sender
  })

/** An entry as it is understood anywhere. */
export const inFull = (entry: string, ownPlatform: string): string =>
  entry === operator || withPlatform.test(entry) ? entry : `${ownPlatform}:${entry}`

export function listFor(
  config: Pick<Config, 'groups'>,
  folder: string,
  key: 'approvers' | 'senders',
): readonly string[] | undefined {
  const lists = settingsFor(config, folder).flatMap(settings => (settings[key] ? [settings[key]] : []))
  return lists.length === 0 ? undefined : lists.flat()
}

/** Whether the group's chat shows what its agent is writing before it is whole. */
export const showsLiveText = (config: Pick<Config, 'groups' | 'agents'>, folder: string): boolean =>
  (settingsOf(config, folder).liveText ?? config.agents.liveText) === 'yes'

export const containsSecrets = (config: Pick<Config, 'groups'>, folder: string): boolean =>
  settingsFor(config, folder).some(settings => settings.containsSecrets === true)
