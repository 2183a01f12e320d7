import type { CommandType } from './commands.ts'
import { type Refusal, refusal } from './errors.ts'

/** The directories of a group that the host takes files from. */
export const inboundDirectories = ['messages', 'tasks', 'groups', 'audio'] as const

const inMessages: readonly string[] = ['messages']
const inTasks: readonly string[] = ['tasks']
const inTasksOrGroups: readonly string[] = ['tasks', 'groups']

/** Where containers put a command. NovaBot's document has a directory for groups, its code puts them with the tasks. */
export const usualDirectories = (command: CommandType): readonly string[] => {
  if (command === 'send_message' || command === 'react') return inMessages
  if (command === 'register_group' || command === 'unregister_group') return inTasksOrGroups
  return inTasks
}

export const misplaced = (directory: string, allowed: readonly string[]): Refusal | undefined =>
  allowed.includes(directory)
    ? undefined
    : refusal(
        'invalid_field',
        `type: a file of this type belongs in ${allowed.map(name => `${name}/`).join(' or ')}`,
      )
