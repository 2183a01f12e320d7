import type { Group } from '@hatchway/protocol'

/** The main group's chat is the operator's own: whatever is said there is for the agent. */
export const isCalled = (text: string, group: Group, assistant: string): boolean =>
  group.main || !group.requires_trigger || callPattern(triggerOf(group, assistant)).test(text.normalize())

export const triggerOf = (group: Pick<Group, 'trigger'>, assistant: string): string => {
  const own = group.trigger?.trim() ?? ''
  return own === '' ? `@${assistant}` : own
}

/** Not `RegExp.escape`, which Node 22 does not have. */
const literally = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')

/** As a word of its own: `@hatch` calls in "hi @Hatch!", and not in "mail@hatch" or "@hatchling". */
const callPattern = (trigger: string): RegExp => {
  const words = trigger.normalize().split(/\s+/).map(literally).join('\\s+')
  const letter = '[\\p{L}\\p{M}\\p{N}_]'
  return new RegExp(`(?<!${letter})${words}(?!${letter})`, 'iu')
}

/** What is said when the name that calls stands before or behind it. */
export const withoutCall = (text: string, trigger: string): string => {
  const { source, flags } = callPattern(trigger)
  return text
    .normalize()
    .trim()
    .replace(new RegExp(`^${source}[\\s,:;]*|${source}$`, flags), '')
}
