import type { Group } from '@hatchway/protocol'
import { visible } from '../../base/visible-text.ts'
import type { Config } from '../../config.ts'
import type { Who } from '../../store/types.ts'
import { inFull, isNamed, isOperator, listFor, type Speaker } from '../people.ts'

/** Somebody who decides, or wants to. */
export interface Person extends Speaker {
  senderName: string
}

/** At the browser, at the terminal, or at the host's command line. */
export const operator: Person = { channel: 'web', sender: 'operator', senderName: 'Operator' }

const approversOf = (config: Pick<Config, 'groups'>, folder: string): readonly string[] =>
  listFor(config, folder, 'approvers') ?? [operator.sender]

/** `home`: the platform of the group's own chat, where people are asked on another. */
export const mayDecide = (
  config: Pick<Config, 'groups'>,
  folder: string,
  person: Person,
  home?: string | undefined,
): boolean => isNamed(approversOf(config, folder), person, home === undefined)

/** Where people are asked for a group. */
export const chatFor = (
  { groups }: Pick<Config, 'groups'>,
  { folder, jid }: Pick<Group, 'folder' | 'jid'>,
): string =>
  Object.entries(groups).find(([name]) => name.toLowerCase() === folder.toLowerCase())?.[1].approvalChat ??
  jid

/** Whether cards of other groups are shown in this chat. */
export const showsOthers = ({ groups }: Pick<Config, 'groups'>, jid: string): boolean =>
  Object.values(groups).some(({ approvalChat }) => approvalChat === jid)

/** Whether a card may be decided in this chat: a chat that another group has got since is not the one it was shown in. */
export const isShownIn = (
  config: Pick<Config, 'groups'>,
  row: { group: string; jid: string },
  chat: { folder: string; jid: string },
): boolean =>
  row.jid === chat.jid &&
  (row.group === chat.folder || chatFor(config, { folder: row.group, jid: '' }) === chat.jid)

/** In words, for those who may not; `home` as above. */
export function deciders(config: Pick<Config, 'groups'>, folder: string, home?: string | undefined): string {
  const names = approversOf(config, folder).map(name =>
    name === operator.sender ? 'the operator' : visible(home === undefined ? name : inFull(name, home)),
  )
  return names.length === 0 ? 'somebody at the host’s command line' : alternatives(names)
}

/** Made when it is needed: making it takes 20 ms, and every command of the command line loads this. */
const alternatives = (names: readonly string[]) =>
  new Intl.ListFormat('en', { type: 'disjunction' }).format(names)

/** A name chosen by its bearer does not stand alone: the one that the channel vouches for stands beside it. */
export const nameOf = (person: Person): string => {
  const name = visible(person.senderName).slice(0, longestName)
  if (isOperator(person) || person.senderName === person.sender) return name
  return `${name} (${visible(person.sender).slice(0, longestName)})`
}

const longestName = 100

export const whoIs = (person: Person): Who =>
  isOperator(person) ? 'operator' : `person:${person.sender.slice(0, longestName)}`
